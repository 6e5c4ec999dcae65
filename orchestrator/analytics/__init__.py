"""Analyses runs in Spark: reads telemetry, makes tables and figures, writes summaries and reports.

The command line imports ``session`` for Spark, ``pipeline`` for the analysis and ``report`` for the page.
Tables, metrics and sections come from ``orchestrator.results.registry``.
"""
