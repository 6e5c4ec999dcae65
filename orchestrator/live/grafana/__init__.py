"""Grafana's dashboards and what sets them up, made from the list of metrics: pure functions.

``python -m orchestrator.live.grafana --write`` writes the folder ``dashboards``.
"""
