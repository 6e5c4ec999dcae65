"""Faces: where pictures come from, who is in them, and how to see it."""
