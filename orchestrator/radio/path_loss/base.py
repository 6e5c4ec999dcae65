"""Shared by all path losses: the type of a matrix, the loss at a time or a distance, checks of parameters."""

import math
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss

Matrix = npt.NDArray[np.float64]

SPEED_OF_LIGHT = 299_792_458.0
CLOSEST_M = 1e-3


def losses_at(model: PathLoss, t: float) -> PathLoss:
    """Returns the path loss at ``t`` (seconds): the same object while it does not change."""
    at = getattr(model, "at", None)
    held: PathLoss = model if at is None else at(t)
    return held


def loss_at(model: PathLoss, distance_m: float) -> float:
    return float(model.loss_db(np.array([[distance_m]]))[0, 0])


def check_numbers(model: Any, positive: tuple[str, ...]) -> None:
    for field in fields(model):
        value = getattr(model, field.name)
        if not math.isfinite(value) or (field.name in positive and value <= 0):
            wanted = "a finite number above 0" if field.name in positive else "a finite number"
            raise BadInput(f"{type(model).__name__}: {field.name} must be {wanted}, not {value}")
