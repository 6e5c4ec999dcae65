"""The language of the files: sections, units, problems with their places, JSON Schema.

``experiment`` and ``topology`` are the files as values. Fields that a registry decides on (``registered``)
get their sections from the rooms above, which this room never imports.
"""
