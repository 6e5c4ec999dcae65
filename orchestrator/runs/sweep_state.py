"""The state of a sweep on disk: which of its cells are done, running, failed, skipped or still waiting.

A cell's own directory is the record: it is done or failed once it has a verdict. ``state.json`` says the same
for people and programs, in one file that is replaced as a whole.
"""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from orchestrator.runs.files import write_json
from orchestrator.runs.verdict import INTERRUPTED, ORCHESTRATOR_DIED, Judgement, Verdict

FILE = "state.json"
PERIOD_S = 1.0
"""With very many cells the file is written at most this often while cells come and go."""
MANY = 200


class CellState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """It has a verdict other than valid."""
    SKIPPED = "skipped"
    """Not run, because the sweep was stopped before its turn."""


def state_after(verdict: Verdict | None) -> CellState:
    """Returns the state of a cell by its verdict; waiting if it has to be run (again)."""
    if verdict is None or was_cut_off(verdict):
        return CellState.WAITING
    return CellState.DONE if verdict.verdict is Judgement.VALID else CellState.FAILED


def was_cut_off(verdict: Verdict) -> bool:
    """Did the run end because the user left, or because its orchestrator was killed?"""
    return any(reason == INTERRUPTED or reason.startswith(ORCHESTRATOR_DIED) for reason in verdict.reasons)


class SweepState:
    """The states by the cells' numbers, and their file."""

    def __init__(self, directory: Path, states: Mapping[int, CellState]) -> None:
        self._path = directory / FILE
        self._states = dict(states)
        self._written = 0.0
        self.write()

    def __getitem__(self, number: int) -> CellState:
        return self._states[number]

    def set(self, number: int, state: CellState) -> None:
        self._states[number] = state
        if len(self._states) <= MANY or time.monotonic() - self._written >= PERIOD_S:
            self.write()

    def skip_the_rest(self) -> None:
        """Marks what was not run."""
        unfinished = (CellState.WAITING, CellState.RUNNING)
        for number, state in self._states.items():
            if state in unfinished:
                self._states[number] = CellState.SKIPPED
        self.write()

    def counts(self) -> dict[str, int]:
        found = Counter(self._states.values())
        return {state.value: found[state] for state in CellState}

    def document(self) -> dict[str, Any]:
        cells = {str(number): state.value for number, state in sorted(self._states.items())}
        return {"counts": self.counts(), "cells": cells}

    def write(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        write_json(self._path, {"t": now, **self.document()})
        self._written = time.monotonic()
