"""Shared by several benchmarks: how figures are printed, whole runs, captures, the protocol of faces."""
