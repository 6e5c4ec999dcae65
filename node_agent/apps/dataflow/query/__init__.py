"""Stream queries in Python: decorate functions, chain them to a query, run it in a test or on a testbed.

Files of users import the same names from ``node_agent.query``; the orchestrator imports ``load``.
"""

from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.query.build import Query, Stream, count, retry, seconds
from node_agent.apps.dataflow.query.errors import OperatorError, QueryError
from node_agent.apps.dataflow.query.functions import operator, sink, source

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
