"""Takes runs in as they grow and end, by Structured Streaming: once for all that is new, or for as long as
runs go on.

``looking`` looks at the runs, ``offsets`` decides what is new, ``feed`` writes that where Spark's file source
finds it, ``query`` runs the query, whose batches go through ``analytics.pipeline``. The command line imports
``query``.
"""
