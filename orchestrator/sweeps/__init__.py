"""Runs the virtual-time cells of a sweep on Spark executors, and brings their runs back exactly once.

The command line imports ``driver`` and hands its ``SparkCells`` to ``lifecycle.invocation``; executors import
``task``.
"""
