"""The command line: one file for each verb. ``main.main`` is the entry point; no other room imports it."""
