"""Timeouts of phases for nodes on other machines, in seconds."""

OVER_A_NETWORK = {"up": 300.0, "converge": 90.0, "stop": 60.0, "collect": 300.0, "down": 60.0}
"""Longer than elsewhere, as deployment and collection go over a network."""
