"""Analyses runs in Spark: reads telemetry, makes tables and figures, writes summaries and reports.

The command line imports ``pipeline`` for the analysis, ``session`` and ``java`` for Spark.
Tables, metrics and sections come from ``orchestrator.results.registry``.
"""
