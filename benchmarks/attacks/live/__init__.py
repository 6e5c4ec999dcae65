"""Attacks on agents and routing daemons that run as processes."""
