"""Switching: decides which downstream replica a replica sends to, by policies over known costs.

``router.Router`` runs on a node; ``decision.decide`` is pure. The orchestrator also imports ``policy``,
``route``, ``chooser``, ``exchange.Mode`` and ``reason_text``; files of users import ``node_agent.switching``.
"""
