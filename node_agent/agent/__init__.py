"""The process on a node: its configuration, the applications that it runs, and how its owner controls it.

Import ``AgentConfig`` from ``config``, ``ProcessConfig`` from ``process``, requests and reports from
``control``. The agent knows applications by ``node_agent.apps.base`` only.
"""
