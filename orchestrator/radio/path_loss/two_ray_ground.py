"""Two-ray ground path loss of the textbooks, as in ns-2 and ns-3."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.radio.path_loss.base import CLOSEST_M, SPEED_OF_LIGHT, Matrix, check_numbers
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.units import Frequency, PositiveLength


class TwoRayGround(PathLossModel):
    """Two-ray ground of the textbooks: free space at short distances, fourth power beyond the crossover
    distance.
    """

    model: Literal["two_ray_ground"]
    frequency: Frequency = 914e6
    antenna_height: PositiveLength = 1.5

    def summary(self) -> str:
        return f"two-ray ground, antennas at {self.antenna_height:g} m, {self.frequency / 1e6:g} MHz"

    def path_loss(self, nodes: tuple[str, ...]) -> "TwoRayGroundLoss":
        return TwoRayGroundLoss(self.frequency, self.antenna_height)


@dataclass(frozen=True)
class TwoRayGroundLoss:
    """Two-ray ground of the textbooks: free space up to the crossover distance, fourth power beyond it."""

    frequency_hz: float = 914e6
    antenna_height_m: float = 1.5

    def __post_init__(self) -> None:
        check_numbers(self, positive=("frequency_hz", "antenna_height_m"))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        d = np.maximum(distance_m, CLOSEST_M)
        wavelength = SPEED_OF_LIGHT / self.frequency_hz
        crossover = 4.0 * math.pi * self.antenna_height_m**2 / wavelength
        near = 20.0 * np.log10(4.0 * math.pi * d / wavelength)
        far = 40.0 * np.log10(d) - 40.0 * math.log10(self.antenna_height_m)
        return np.maximum(np.where(d <= crossover, near, far), 0.0)
