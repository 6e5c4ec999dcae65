"""Path loss: how many decibels a signal loses between two antennas, for a whole matrix of distances at once.

``inf`` means that nothing arrives at all. A measured or precomputed mesh is a path loss too: one that looks
the loss up instead of computing it.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from orchestrator.errors import BadInput
from orchestrator.radio.loss_file import LossChange

Matrix = npt.NDArray[np.float64]

_SPEED_OF_LIGHT = 299_792_458.0
_FREE_SPACE_PER_MHZ_KM = 41.916900439033640
_CLOSEST_M = 1e-3


class PathLoss(Protocol):
    def loss_db(self, distance_m: Matrix) -> Matrix:
        """The loss from node i (row) to node j (column)."""
        ...


@dataclass(frozen=True)
class TwoRay:
    """Two-ray ground as EMANE computes it: no frequency, no free-space part, heights of at least 1 m."""

    antenna_height_m: float = 2.0

    def __post_init__(self) -> None:
        _check(self, positive=("antenna_height_m",))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        gain = 40.0 * math.log10(max(1.0, self.antenna_height_m))
        return np.maximum(40.0 * np.log10(np.maximum(distance_m, _CLOSEST_M)) - gain, 0.0)


@dataclass(frozen=True)
class TwoRayGround:
    """Two-ray ground of the textbooks: free space up to the crossover distance, fourth power beyond it."""

    frequency_hz: float = 914e6
    antenna_height_m: float = 1.5

    def __post_init__(self) -> None:
        _check(self, positive=("frequency_hz", "antenna_height_m"))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        d = np.maximum(distance_m, _CLOSEST_M)
        wavelength = _SPEED_OF_LIGHT / self.frequency_hz
        crossover = 4.0 * math.pi * self.antenna_height_m**2 / wavelength
        near = 20.0 * np.log10(4.0 * math.pi * d / wavelength)
        far = 40.0 * np.log10(d) - 40.0 * math.log10(self.antenna_height_m)
        return np.maximum(np.where(d <= crossover, near, far), 0.0)


@dataclass(frozen=True)
class FreeSpace:
    frequency_hz: float = 2.347e9

    def __post_init__(self) -> None:
        _check(self, positive=("frequency_hz",))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        scale = _FREE_SPACE_PER_MHZ_KM * self.frequency_hz / 1e6 / 1e3
        return np.maximum(20.0 * np.log10(scale * np.maximum(distance_m, _CLOSEST_M)), 0.0)


@dataclass(frozen=True)
class LogDistance:
    exponent: float = 3.0
    reference_loss_db: float = 40.0
    reference_m: float = 1.0

    def __post_init__(self) -> None:
        _check(self, positive=("exponent", "reference_m"))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        ratio = np.maximum(distance_m / self.reference_m, _CLOSEST_M)
        return np.maximum(self.reference_loss_db + 10.0 * self.exponent * np.log10(ratio), 0.0)


@dataclass(frozen=True)
class RangeDisc:
    """Full power up to ``range_m``, nothing beyond."""

    range_m: float

    def __post_init__(self) -> None:
        _check(self, positive=("range_m",))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        return np.where(distance_m <= self.range_m, 0.0, np.inf)


class LinkMatrix:
    """The loss of each link as measured or computed elsewhere; ``inf`` where there is no link."""

    def __init__(self, loss_db: Sequence[Sequence[float]] | Matrix) -> None:
        matrix = np.array(loss_db, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise BadInput(f"a matrix of link losses must be square, not {'×'.join(map(str, matrix.shape))}")
        off_diagonal = matrix[~np.eye(len(matrix), dtype=bool)]
        if np.isnan(off_diagonal).any() or (off_diagonal < 0).any():
            raise BadInput("every link loss must be a number of decibels, 0 or more (inf: no link)")
        self._matrix = matrix

    def loss_db(self, distance_m: Matrix) -> Matrix:
        if distance_m.shape != self._matrix.shape:
            raise BadInput(f"the link losses are for {len(self._matrix)} nodes, not for {len(distance_m)}")
        return self._matrix


class LinkTrace:
    """Link losses that change at given times (seconds); before the first time the first matrix holds.

    Taken for a path loss without a time, it is that of the beginning.
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
        """From nothing, change by change."""
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


def losses_at(model: PathLoss, t: float) -> PathLoss:
    """What holds at ``t`` (seconds); the same object for as long as it holds."""
    return model.at(t) if isinstance(model, LinkTrace) else model


def loss_at(model: PathLoss, distance_m: float) -> float:
    return float(model.loss_db(np.array([[distance_m]]))[0, 0])


def _check(model: Any, positive: tuple[str, ...]) -> None:
    for field in fields(model):
        value = getattr(model, field.name)
        if not math.isfinite(value) or (field.name in positive and value <= 0):
            wanted = "a finite number above 0" if field.name in positive else "a finite number"
            raise BadInput(f"{type(model).__name__}: {field.name} must be {wanted}, not {value}")
