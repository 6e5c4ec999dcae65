"""Defines the sections of one dataflow in an experiment file: query, replicas, placement, switching,
delivery.

``section.DataflowSection`` holds them all; ``placement`` also owns the registry of placement policies.
"""
