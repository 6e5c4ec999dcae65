"""Explains what replicas decided in a run, and replays decisions under other policies, from telemetry alone.

``application`` imports ``answers``; ``explain``, ``replay`` and ``history`` return plain values.
"""
