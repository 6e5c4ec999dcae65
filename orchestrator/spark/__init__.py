"""Starts Spark, here or on a cluster, and brings Rove's code to its executors.

Analytics and sweeps import ``session`` for a session; the command line imports ``java`` to look for Java.
"""
