"""Clocks of nodes beside the orchestrator's: measured, judged, and taken out of what nodes recorded."""
