"""What the radio's benchmarks hold it against, and the scenarios they run."""
