"""Setting up a real node for a run: its radio, its address, forwarding, and links that are only emulated.

``python -m node_agent.host.setup --order FILE`` needs root. It changes as little as it can, and when it ends,
everything is as it was before.
"""
