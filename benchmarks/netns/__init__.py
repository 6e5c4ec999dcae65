"""What the benchmark of namespaces is made of."""
