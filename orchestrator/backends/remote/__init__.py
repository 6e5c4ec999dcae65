"""Nodes on other machines: a supervisor on each, reached over SSH; what ssh and core have in common."""
