"""What several benchmarks share: how figures are printed, whole runs, captures, the protocol of faces."""
