"""Path losses that change over time, from a file."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from orchestrator.errors import BadInput
from orchestrator.radio.path_loss.base import Matrix
from orchestrator.radio.path_loss.loss_file import (
    CSV,
    LossChange,
    file_findings,
    path_of,
    read_loss_file,
    read_reference,
)
from orchestrator.radio.path_loss.matrix import LinkMatrix
from orchestrator.spec.file_reference import FileReference
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.problems import Finding

TimedLossFile = Annotated[
    FileReference,
    PlainValidator(read_reference),
    PlainSerializer(path_of),
    WithJsonSchema({"type": "string", "description": f"{CSV} t,src,dst,loss_db"}),
]


class LossTrace(PathLossModel):
    """Like a matrix, but changing over time: a line of the file holds from its time on."""

    follows_distance = False
    changes = True

    model: Literal["trace"]
    file: TimedLossFile = Field(examples=["losses.csv"])

    def summary(self) -> str:
        return f"over time, as listed in {self.file.path.name}"

    def path_loss(self, nodes: tuple[str, ...]) -> "LinkTrace":
        return LinkTrace.following(len(nodes), read_loss_file(self.file, nodes, timed=True))

    def findings_for(self, nodes: tuple[str, ...]) -> list[Finding]:
        return file_findings(self.file, nodes, timed=True)


class LinkTrace:
    """Link losses that change at given times (seconds). The first matrix also holds before the first time.

    Used as a path loss without a time, it is the first matrix.
    """

    def __init__(self, steps: Sequence[tuple[float, LinkMatrix]]) -> None:
        if not steps:
            raise BadInput("a trace of link losses needs at least one matrix")
        times = [t for t, _ in steps]
        if not all(math.isfinite(t) for t in times):
            raise BadInput("every time in a trace of link losses must be a finite number of seconds")
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise BadInput("time runs backwards in the trace of link losses")
        self._times = times
        self._matrices = [matrix for _, matrix in steps]

    @classmethod
    def following(cls, nodes: int, changes: Iterable[LossChange]) -> "LinkTrace":
        """Builds the trace from changes; no link exists before the first one."""
        loss_db = np.full((nodes, nodes), np.inf)
        steps = []
        for t, at_once in groupby(changes, key=attrgetter("t")):
            for change in at_once:
                loss = np.inf if change.loss_db is None else change.loss_db
                loss_db[change.source, change.destination] = loss
            steps.append((t, LinkMatrix(loss_db)))
        return cls(steps)

    def loss_db(self, distance_m: Matrix) -> Matrix:
        return self._matrices[0].loss_db(distance_m)

    def at(self, t: float) -> LinkMatrix:
        return self._matrices[max(bisect_right(self._times, t) - 1, 0)]
