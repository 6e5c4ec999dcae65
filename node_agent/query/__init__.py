"""Stream queries in Python: decorate functions, chain them to a query, run it in a test or on a testbed.

This is what files of users import; ``node_agent.apps.dataflow.query`` implements it.
"""

from node_agent.apps.dataflow.query import (
    Context,
    OperatorError,
    Query,
    QueryError,
    Stream,
    count,
    operator,
    retry,
    seconds,
    sink,
    source,
)

__all__ = [
    "Context",
    "OperatorError",
    "Query",
    "QueryError",
    "Stream",
    "count",
    "operator",
    "retry",
    "seconds",
    "sink",
    "source",
]
