"""Operators: which kinds there are, what they may use of a node, and how a replica calls them.

Import ``OPERATORS``, ``QUERIES``, ``OperatorKind`` and ``Context`` from ``registry``. Both runtimes use
``processing`` and ``one_by_one``; ``synthetic`` defines operators for load.
"""
