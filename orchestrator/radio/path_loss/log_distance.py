"""Log-distance path loss: grows with a power of the distance."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from orchestrator.radio.path_loss.base import CLOSEST_M, Matrix, check_numbers
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.units import LEVEL, PositiveLength

_LOSS = LEVEL.within(ge=0)


class LogDistance(PathLossModel):
    """The loss grows with a power of the distance: 2 in free space, 3 to 5 among obstacles."""

    model: Literal["log_distance"]
    exponent: Annotated[float, Field(strict=True, gt=0, le=20, allow_inf_nan=False)] = 3.0
    reference_loss: Annotated[float, _LOSS] = Field(default=40.0, description="At the reference distance")
    reference_distance: PositiveLength = 1.0

    def summary(self) -> str:
        return f"exponent {self.exponent:g}, {self.reference_loss:g} dB at {self.reference_distance:g} m"

    def path_loss(self, nodes: tuple[str, ...]) -> "LogDistanceLoss":
        return LogDistanceLoss(self.exponent, self.reference_loss, self.reference_distance)


@dataclass(frozen=True)
class LogDistanceLoss:
    exponent: float = 3.0
    reference_loss_db: float = 40.0
    reference_m: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(self, positive=("exponent", "reference_m"))

    def loss_db(self, distance_m: Matrix) -> Matrix:
        ratio = np.maximum(distance_m / self.reference_m, CLOSEST_M)
        return np.maximum(self.reference_loss_db + 10.0 * self.exponent * np.log10(ratio), 0.0)
