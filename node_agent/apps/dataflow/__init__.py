"""The stream query application: replicated operators, delivery between them, and switching among replicas.

``application.QUERY`` registers it. The orchestrator imports ``config``, ``events``, ``belief`` and ``model``;
files of users import ``node_agent.query``, ``node_agent.testing`` and ``node_agent.switching``.
"""
