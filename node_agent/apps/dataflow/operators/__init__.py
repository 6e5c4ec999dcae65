"""Operators: the registry of kinds, and how one is run. ``registry`` has ``OPERATORS`` and ``QUERIES``."""
