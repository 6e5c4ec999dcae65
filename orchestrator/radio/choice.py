"""Describes a radio as plain data that can be sent to the process that models it."""

from dataclasses import replace
from typing import Any

from msgspec import Struct

from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.airtime import DOT11_OVERHEAD
from orchestrator.radio.path_loss.build import path_loss_of, read_path_loss
from orchestrator.radio.presets import DEFAULT_PRESET, PRESETS, radio_preset
from orchestrator.radio.reception import Reception, dsss_reception, emane_reception
from orchestrator.radio.settings import Radio


class PathLossChoice(Struct, frozen=True):
    """A path-loss section as plain data, and the nodes whose losses it looks up."""

    model: str
    parameters: dict[str, Any] = {}
    nodes: tuple[str, ...] = ()

    def path_loss(self) -> PathLoss:
        return path_loss_of(read_path_loss({"model": self.model, **self.parameters}), self.nodes)


class RadioChoice(Struct, frozen=True):
    """A preset, its arguments (range, antenna height), and the fields of ``Radio`` that differ from it."""

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
        radio_preset(self.preset)  # raises an error if the name is unknown
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
