"""A run as it goes on, or goes on again: reads a run's directory and turns it into changes.

Import ``LiveRun`` and ``State`` from ``run`` and ``state``; the web server is in ``server``.
"""
