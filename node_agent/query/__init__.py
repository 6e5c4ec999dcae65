"""Stream queries in Python: decorate functions, chain them to a query, run it in a test or on a testbed."""

from node_agent.dataflow.registry import Context
from node_agent.query.build import Query, Stream, count, retry, seconds
from node_agent.query.errors import OperatorError, QueryError
from node_agent.query.functions import operator, sink, source

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
