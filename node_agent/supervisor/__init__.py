"""The keeper: one process a node that owns a run there, with nobody logged in, until ended or left alone."""

PROTOCOL = 1
"""Of orders, of what is said over the keeper's socket, and of the agent's control: the same on both sides."""
