"""Chains of processes that pass tuples on, for the throughput benchmark."""
