"""Analyses runs in Spark: reads telemetry, makes tables and figures, writes summaries and reports.

The command line imports ``pipeline``. Spark itself is started by ``orchestrator.spark``.
Tables, metrics and sections come from ``orchestrator.results.registry``.
"""
