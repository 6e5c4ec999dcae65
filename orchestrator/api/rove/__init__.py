"""Rove's Python API: ``rove.load`` and ``rove.compare``. ``orchestrator.api`` has the code."""

from orchestrator.api import ComparedRuns, RoveError, Runs, compare, load

__all__ = ["ComparedRuns", "RoveError", "Runs", "compare", "load"]
