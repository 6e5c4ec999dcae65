"""Prepares and analyses face queries on the experimenter's machine: models, pictures, galleries, results.

Only ``apps.dataflow`` imports it; ``verbs`` and ``analytics`` are registered with command line and results.
"""
