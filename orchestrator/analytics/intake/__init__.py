"""Reads run directories once and keeps what they hold in columns, for ``analytics.ingest`` to make tables of.

``parts`` divides runs among tasks; ``task`` reads the files of a part and writes one Parquet file for each
kind of record; ``take_in`` runs the tasks, here or in Spark, and enters their files into the store. Records
are decoded and judged by the rules of ``node_agent.telemetry``, by the same functions that agents and
collection use.
"""
