"""Values that several rooms of the orchestrator share: where nodes are, what a radio's signal loses.

The lowest room: it imports no other room, and every room may import it.
"""
