"""A radio as plain data: what is read from a file, and what a process is told to model."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import Struct

from orchestrator.errors import BadInput
from orchestrator.radio.airtime import DOT11_OVERHEAD
from orchestrator.radio.loss_file import LossChange
from orchestrator.radio.pathloss import (
    FreeSpace,
    LinkMatrix,
    LinkTrace,
    LogDistance,
    PathLoss,
    RangeDisc,
    TwoRay,
    TwoRayGround,
)
from orchestrator.radio.presets import DEFAULT_PRESET, PRESETS, radio_preset
from orchestrator.radio.reception import Reception, dsss_reception, emane_reception
from orchestrator.radio.settings import Radio

PATH_LOSSES: dict[str, Callable[..., PathLoss]] = {
    "two_ray": TwoRay,
    "two_ray_ground": TwoRayGround,
    "free_space": FreeSpace,
    "log_distance": LogDistance,
    "range": RangeDisc,
}


class PathLossChoice(Struct, frozen=True):
    """A model by name with its arguments, a ``matrix`` of losses (None: no link), or ``changes`` of one."""

    model: str
    arguments: dict[str, float] = {}
    matrix: list[list[float | None]] = []
    nodes: int = 0
    changes: list[LossChange] = []

    def path_loss(self) -> PathLoss:
        if self.model == "matrix":
            return LinkMatrix([[math.inf if loss is None else loss for loss in row] for row in self.matrix])
        if self.model == "trace":
            return LinkTrace.following(self.nodes, self.changes)
        if self.model not in PATH_LOSSES:
            raise BadInput(f'there is no path loss "{self.model}"')
        try:
            return PATH_LOSSES[self.model](**self.arguments)
        except TypeError as error:
            raise BadInput(f"path loss {self.model}: {error}") from None


class RadioChoice(Struct, frozen=True):
    """A preset, the arguments it takes (range, antenna height), and fields of ``Radio`` to be different."""

    preset: str = DEFAULT_PRESET
    arguments: dict[str, float] = {}
    overrides: dict[str, float | None] = {}
    path_loss: PathLossChoice | None = None
    reception: str | None = None

    def radio(self) -> Radio:
        radio = radio_preset(self.preset) if not self.arguments else self._built()
        changes: dict[str, Any] = dict(self.overrides)
        if self.path_loss is not None:
            changes["path_loss"] = self.path_loss.path_loss()
        if self.reception is not None:
            changes["reception"] = _reception(self.reception)
        try:
            return replace(radio, **changes)
        except TypeError as error:
            raise BadInput(f"radio {self.preset}: {error}") from None

    def _built(self) -> Radio:
        radio_preset(self.preset)  # complains about an unknown name
        build: Any = PRESETS[self.preset]
        try:
            radio: Radio = build(**self.arguments)
        except TypeError as error:
            raise BadInput(f"radio {self.preset}: {error}") from None
        return radio


def _reception(name: str) -> Reception:
    match name:
        case "emane":
            return emane_reception()
        case "dsss":
            return dsss_reception(DOT11_OVERHEAD)
        case _:
            raise BadInput(f'there is no reception model "{name}": choose emane or dsss')
