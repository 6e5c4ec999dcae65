"""Measures the nodes' clocks against the orchestrator's, judges them, and corrects the times in records.

Backends import ``watch`` and ``book``; analytics import ``correction``.
"""
