"""Builds the path loss of given nodes from a section; checks each use of a user's model."""

from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from node_agent.extensions import ExtensionError
from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.path_loss.base import Matrix
from orchestrator.spec.foreign_calls import called
from orchestrator.spec.pathloss import PATH_LOSS_MODELS, PathLossField, PathLossModel
from orchestrator.spec.registered import file_of, place_of
from orchestrator.spec.translate import findings_of

_READER: TypeAdapter[PathLossModel] = TypeAdapter(PathLossField)


def read_path_loss(document: dict[str, Any]) -> PathLossModel:
    """Reads a section given as plain values. Raises BadInput."""
    try:
        return _READER.validate_python(document)
    except ValidationError as error:
        found = findings_of(error, PathLossModel, document)
        raise BadInput("; ".join(f"path loss: {finding.message}" for finding in found)) from None


def path_loss_of(section: PathLossModel, nodes: tuple[str, ...]) -> PathLoss:
    """Returns the path loss. Raises BadInput if a user's model fails."""
    if PATH_LOSS_MODELS.is_builtin(section.model):
        return section.path_loss(nodes)
    file = file_of(section.model, type(section))
    inner = _called(section, file, section.path_loss, nodes)
    if not callable(getattr(inner, "loss_db", None)):
        place = place_of(type(section).path_loss)
        text = f"path_loss() of the path-loss model returned {type(inner).__name__}, which has no loss_db()"
        raise BadInput(f"{place}: {text}")
    return _Timed(inner, section, file) if hasattr(inner, "at") else _Guarded(inner, section, file)


class _Guarded:
    """A user's path loss. If it raises or returns nonsense, that becomes a BadInput with file and line."""

    def __init__(self, inner: PathLoss, section: PathLossModel, file: str | None) -> None:
        self._inner = inner
        self._section = section
        self._file = file

    def loss_db(self, distance_m: Matrix) -> Matrix:
        answer = _called(self._section, self._file, self._inner.loss_db, distance_m)
        problem = _problem(answer, distance_m)
        if problem:
            place = place_of(type(self._inner).loss_db)
            raise BadInput(f"{place}: loss_db() of the path-loss model returned {problem}")
        return np.asarray(answer, dtype=np.float64)


class _Timed(_Guarded):
    """A user's path loss that changes over time."""

    _now: tuple[Any, PathLoss] | None = None

    def at(self, t: float) -> PathLoss:
        inner: Any = self._inner
        held = _called(self._section, self._file, inner.at, t)
        # The same object while the same losses hold: the channel is recomputed only when they change.
        if self._now is None or self._now[0] is not held:
            self._now = held, _Guarded(held, self._section, self._file)
        return self._now[1]


def _called(section: PathLossModel, file: str | None, function: Any, argument: Any) -> Any:
    try:
        return called(f"path-loss model {section.model}", file, lambda: function(argument))
    except ExtensionError as error:
        raise BadInput(str(error)) from error


def _problem(answer: Any, distance_m: Matrix) -> str:
    try:
        losses = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        return f"{type(answer).__name__} and not an array of numbers"
    if losses.shape != distance_m.shape:
        return f"an array of shape {losses.shape} for distances of shape {distance_m.shape}"
    if np.isnan(losses).any():
        return "losses that are not numbers (nan)"
    return "losses below 0 dB" if (losses < 0).any() else ""
