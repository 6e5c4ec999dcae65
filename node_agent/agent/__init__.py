"""The agent's process on a node: its configuration, the applications that it runs, and its control.

Import ``AgentConfig`` from ``config``, ``ProcessConfig`` from ``process``, requests and reports from
``control``. The agent knows applications only through ``node_agent.apps.base``.
"""
