"""Sets up a real node for a run: its radio, its address, forwarding, and emulated links.

``python -m node_agent.host.setup --order FILE`` needs root. It changes as little as possible and restores
everything when it ends. Others import ``order``, ``journal.path_for`` and ``facts``.
"""
