"""Defines the language of experiment and topology files: sections, units, problems, JSON Schema.

Import ``experiment`` and ``topology`` for the files as values, ``problems`` for findings. Registries here get
sections from the rooms above (``registered``), which this room never imports.
"""
