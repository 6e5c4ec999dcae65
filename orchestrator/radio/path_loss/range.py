"""Path loss with a fixed range: no loss up to it, nothing arrives beyond it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from orchestrator.radio.path_loss.base import Matrix, check_numbers
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.units import PositiveLength


class Range(PathLossModel):
    """No loss up to ``range``, nothing arrives beyond it."""

    model: Literal["range"]
    range: PositiveLength = Field(examples=["250 m"])

    def summary(self) -> str:
        return f"none up to {self.range:g} m, all beyond"

    def path_loss(self, nodes: tuple[str, ...]) -> "RangeLoss":
        return RangeLoss(self.range)


@dataclass(frozen=True)
class RangeLoss:
    """Full power up to ``range_m``, nothing beyond."""

    range_m: float

    def __post_init__(self) -> None:
        check_numbers(self, positive=("range_m",))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        return np.where(distance_m <= self.range_m, 0.0, np.inf)
