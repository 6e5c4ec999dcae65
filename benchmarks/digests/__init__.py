"""Experiments in virtual time, what they recorded, and digests of it."""
