"""Path losses that were measured or computed elsewhere, one for each link."""

from collections.abc import Sequence
from math import inf
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from orchestrator.errors import BadInput
from orchestrator.radio.path_loss.base import Matrix
from orchestrator.radio.path_loss.loss_file import CSV, file_findings, path_of, read_loss_file, read_reference
from orchestrator.spec.file_reference import FileReference
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.units import LEVEL

_LOSS = LEVEL.within(ge=0)


def _read_losses(value: Any) -> dict[str, dict[str, float]] | None:
    if value is None:
        return None
    hint = "write it like losses: {a: {b: 80 dB}, b: {c: 85 dB}}"
    if not isinstance(value, dict) or not value:
        raise unusable(f"{shown(value)} is not a mapping of losses between nodes", hint)
    findings: list[Finding] = []
    read: dict[str, dict[str, float]] = {}
    for source, row in value.items():
        if not isinstance(row, dict):
            findings.append(Finding((source,), f"{shown(row)}: expected a loss for each neighbour", hint))
            continue
        read[source] = {}
        for destination, loss in row.items():
            at = (source, destination)
            if destination == source:
                findings.append(Finding(at, "a node has no link to itself"))
                continue
            try:
                read[source][destination] = _LOSS.read(loss)
            except Unusable as error:
                findings += [Finding(at, f.message, f.hint) for f in error.findings]
    if findings:
        raise Unusable(*findings)
    return read


Losses = Annotated[
    dict[str, dict[str, float]] | None,
    BeforeValidator(_read_losses),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"type": ["number", "string"]},
            },
            "description": "Loss from node to node; both ways alike unless the way back is listed, too",
            "examples": [{"a": {"b": "80 dB"}, "b": {"c": "85 dB"}}],
        }
    ),
]


def _read_optional_file(value: Any, info: ValidationInfo) -> FileReference | None:
    return None if value is None else read_reference(value, info)


FixedLossFile = Annotated[
    FileReference | None,
    PlainValidator(_read_optional_file),
    PlainSerializer(path_of),
    WithJsonSchema({"type": "string", "description": f"{CSV} src,dst,loss_db"}),
]


class LossMatrix(PathLossModel):
    """A loss for each link, measured or computed elsewhere; a pair that is not listed has no link."""

    follows_distance = False

    model: Literal["matrix"]
    losses: Losses = Field(default=None, examples=["{a: {b: 80 dB}, b: {c: 85 dB}}"])
    file: FixedLossFile = Field(default=None, examples=["losses.csv"])

    @model_validator(mode="after")
    def _one_way(self) -> "LossMatrix":
        if (self.losses is None) == (self.file is None):
            text = "missing" if self.file is None else "given here and in a file"
            raise unusable(text, "either losses: {a: {b: 80 dB}} or file: losses.csv", at=("losses",))
        return self

    def summary(self) -> str:
        if self.file is not None:
            return f"as listed in {self.file.path.name}"
        return f"as listed for {sum(map(len, (self.losses or {}).values()))} links"

    def rows(self, nodes: tuple[str, ...]) -> list[list[float | None]]:
        """Returns losses in the order of ``nodes``, from row to column; None: no link."""
        if self.file is None:
            return [[self._between(here, there) for there in nodes] for here in nodes]
        rows: list[list[float | None]] = [[None] * len(nodes) for _ in nodes]
        for _, source, destination, loss_db in read_loss_file(self.file, nodes, timed=False):
            rows[source][destination] = loss_db
        return rows

    def findings_for(self, nodes: tuple[str, ...]) -> list[Finding]:
        if self.file is not None:
            return file_findings(self.file, nodes, timed=False)
        known = frozenset(nodes)
        losses = self.losses or {}
        named: list[tuple[str, ...]] = [(source,) for source in losses]
        named += [(source, node) for source, row in losses.items() for node in row]
        return [
            Finding(("losses", *at), f"there is no node {shown(at[-1])}", did_you_mean(at[-1], nodes))
            for at in named
            if at[-1] not in known
        ]

    def path_loss(self, nodes: tuple[str, ...]) -> "LinkMatrix":
        return LinkMatrix([[inf if loss is None else loss for loss in row] for row in self.rows(nodes)])

    def _between(self, here: str, there: str) -> float | None:
        losses = self.losses or {}
        listed = losses.get(here, {}).get(there)
        return losses.get(there, {}).get(here) if listed is None else listed


class LinkMatrix:
    """The loss of each link, as measured or computed elsewhere; ``inf``: no link."""

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
