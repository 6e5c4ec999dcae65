"""Face queries on the experimenter's machine: models, pictures, galleries, the table and section of faces.

Only ``apps.dataflow`` imports it; ``verbs`` and ``analytics`` are registered with command line and results.
"""
