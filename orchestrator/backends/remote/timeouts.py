"""How long phases may take where nodes are other machines, in seconds."""

OVER_A_NETWORK = {"up": 300.0, "converge": 90.0, "stop": 60.0, "collect": 300.0, "down": 60.0}
"""What is deployed and collected goes over a network there."""
