"""Figures of merit, each run by `python -m benchmarks.NAME --json`."""
