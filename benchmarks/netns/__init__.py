"""Parts of the benchmark of namespaces."""
