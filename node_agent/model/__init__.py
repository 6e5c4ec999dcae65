"""Frozen values and bounded decoding that agents and orchestrator share.

Every room may import its modules: ``telemetry`` (the agent's events), ``checked``, ``cost_graph``,
``intervals``, ``refusals`` and ``host_load``. It imports no other room.
"""
