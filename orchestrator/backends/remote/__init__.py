"""Nodes on other machines: a keeper on each, reached over SSH; what ssh and core have in common."""
