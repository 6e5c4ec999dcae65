"""Parts of the benchmark ``spark_pipeline``: many run directories, the same analysis by DuckDB, and what
both cost.
"""
