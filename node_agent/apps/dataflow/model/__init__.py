"""Frozen values of a dataflow: query, deployment plan, tuples, windows, and what switching decides on.

All rooms of the dataflow and the orchestrator may import its modules; they import no other room of it.
"""
