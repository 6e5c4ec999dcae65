"""Frozen values that agents and orchestrator share."""
