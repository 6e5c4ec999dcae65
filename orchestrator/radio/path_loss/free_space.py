"""Free-space path loss: grows with the square of the distance."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.radio.path_loss.base import CLOSEST_M, Matrix, check_numbers
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.units import Frequency

_FREE_SPACE_PER_MHZ_KM = 41.916900439033640


class FreeSpace(PathLossModel):
    """Free space: the loss grows with the square of the distance."""

    model: Literal["free_space"]
    frequency: Frequency = 2.347e9

    def summary(self) -> str:
        return f"free space, {self.frequency / 1e6:g} MHz"

    def path_loss(self, nodes: tuple[str, ...]) -> "FreeSpaceLoss":
        return FreeSpaceLoss(self.frequency)


@dataclass(frozen=True)
class FreeSpaceLoss:
    frequency_hz: float = 2.347e9

    def __post_init__(self) -> None:
        check_numbers(self, positive=("frequency_hz",))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        scale = _FREE_SPACE_PER_MHZ_KM * self.frequency_hz / 1e6 / 1e3
        return np.maximum(20.0 * np.log10(scale * np.maximum(distance_m, CLOSEST_M)), 0.0)
