"""The supervisor: one process a node that owns a run there until it is told to end or its lease runs out.

It starts the set-up, the services and the agent, and needs nobody to be logged in. The orchestrator imports
``order``, ``commands``, ``place`` and ``bridge``, and calls ``python -m node_agent.supervisor`` on the node.
"""

PROTOCOL = 1
"""The version of orders, of the supervisor's socket, and of the agent's control; both sides must agree."""
