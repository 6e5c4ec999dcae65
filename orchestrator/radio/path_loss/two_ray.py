"""Two-ray ground path loss as EMANE computes it."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from orchestrator.radio.path_loss.base import CLOSEST_M, Matrix, check_numbers
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.units import LENGTH


class TwoRay(PathLossModel):
    """Two-ray ground as EMANE computes it: the fourth power of the distance everywhere, at any frequency."""

    model: Literal["two_ray"]
    antenna_height: Annotated[float, LENGTH.within(ge=1.0)] = Field(
        default=2.0, description="Of both antennas, above the ground"
    )

    def summary(self) -> str:
        return f"two-ray ground, antennas at {self.antenna_height:g} m"

    def path_loss(self, nodes: tuple[str, ...]) -> "TwoRayLoss":
        return TwoRayLoss(self.antenna_height)


@dataclass(frozen=True)
class TwoRayLoss:
    """Two-ray ground as EMANE computes it: no frequency, no free-space part, heights of at least 1 m."""

    antenna_height_m: float = 2.0

    def __post_init__(self) -> None:
        check_numbers(self, positive=("antenna_height_m",))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        gain = 40.0 * math.log10(max(1.0, self.antenna_height_m))
        return np.maximum(40.0 * np.log10(np.maximum(distance_m, CLOSEST_M)) - gain, 0.0)
