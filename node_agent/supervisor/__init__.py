"""One process a node, the supervisor, owns a run there until it is told to end or its lease runs out."""

PROTOCOL = 1
"""The version of orders, of the supervisor's socket, and of the agent's control; both sides must agree."""
