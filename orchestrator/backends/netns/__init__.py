"""Nodes as network namespaces on this machine: built from values, taken down by their mark."""
