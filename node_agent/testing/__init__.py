"""Run a query in one process, without network and in no time: for users' own unit tests.

``node_agent.apps.dataflow.testing`` implements it.
"""

from node_agent.apps.dataflow.testing import ABORT, EOF, PAUSE, DeadLetter, Results, run

__all__ = ["ABORT", "EOF", "PAUSE", "DeadLetter", "Results", "run"]
