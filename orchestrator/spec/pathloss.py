"""What a signal loses on its way: the models that a radio's ``pathloss`` section may name."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from orchestrator.mobility.trace_file import TraceError
from orchestrator.radio.loss_file import LossChange, read_losses
from orchestrator.spec.base import Section
from orchestrator.spec.file_reference import FileReference, reader
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.units import LENGTH, LEVEL, Frequency, PositiveLength

_LOSS = LEVEL.within(ge=0)


class TwoRay(Section):
    """Two-ray ground as EMANE has it: the fourth power of the distance everywhere, whatever the frequency."""

    model: Literal["two_ray"]
    antenna_height: Annotated[float, LENGTH.within(ge=1.0)] = Field(
        default=2.0, description="Of both antennas, above the ground"
    )

    def summary(self) -> str:
        return f"two-ray ground, antennas at {self.antenna_height:g} m"


class TwoRayGround(Section):
    """Two-ray ground of the textbooks: free space near by, the fourth power beyond the crossover distance."""

    model: Literal["two_ray_ground"]
    frequency: Frequency = 914e6
    antenna_height: PositiveLength = 1.5

    def summary(self) -> str:
        return f"two-ray ground, antennas at {self.antenna_height:g} m, {self.frequency / 1e6:g} MHz"


class FreeSpace(Section):
    """Nothing but distance: the square of it."""

    model: Literal["free_space"]
    frequency: Frequency = 2.347e9

    def summary(self) -> str:
        return f"free space, {self.frequency / 1e6:g} MHz"


class LogDistance(Section):
    """A power of the distance: 2 in free space, 3 to 5 among obstacles."""

    model: Literal["log_distance"]
    exponent: Annotated[float, Field(strict=True, gt=0, le=20, allow_inf_nan=False)] = 3.0
    reference_loss: Annotated[float, _LOSS] = Field(default=40.0, description="At the reference distance")
    reference_distance: PositiveLength = 1.0

    def summary(self) -> str:
        return f"exponent {self.exponent:g}, {self.reference_loss:g} dB at {self.reference_distance:g} m"


class Range(Section):
    """No loss up to ``range``, nothing arrives beyond it."""

    model: Literal["range"]
    range: PositiveLength = Field(examples=["250 m"])

    def summary(self) -> str:
        return f"none up to {self.range:g} m, all beyond"


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


_read_loss_file = reader(FileReference, "losses.csv")


def _read_optional_file(value: Any, info: ValidationInfo) -> FileReference | None:
    return None if value is None else _read_loss_file(value, info)


def _path_of(file: FileReference | None) -> str | None:
    return None if file is None else str(file.path)


_CSV = "A CSV file, relative to this one, that begins with the line"
FixedLossFile = Annotated[
    FileReference | None,
    PlainValidator(_read_optional_file),
    PlainSerializer(_path_of),
    WithJsonSchema({"type": "string", "description": f"{_CSV} src,dst,loss_db"}),
]
TimedLossFile = Annotated[
    FileReference,
    PlainValidator(_read_loss_file),
    PlainSerializer(_path_of),
    WithJsonSchema({"type": "string", "description": f"{_CSV} t,src,dst,loss_db"}),
]


class Matrix(Section):
    """Measured or computed elsewhere, link by link; what is not listed has no link."""

    model: Literal["matrix"]
    losses: Losses = Field(default=None, examples=["{a: {b: 80 dB}, b: {c: 85 dB}}"])
    file: FixedLossFile = Field(default=None, examples=["losses.csv"])

    @model_validator(mode="after")
    def _one_way(self) -> "Matrix":
        if (self.losses is None) == (self.file is None):
            text = "missing" if self.file is None else "given here and in a file"
            raise unusable(text, "either losses: {a: {b: 80 dB}} or file: losses.csv", at=("losses",))
        return self

    def summary(self) -> str:
        if self.file is not None:
            return f"as listed in {self.file.path.name}"
        return f"as listed for {sum(map(len, (self.losses or {}).values()))} links"

    def rows(self, nodes: tuple[str, ...]) -> list[list[float | None]]:
        """In the order of ``nodes``, from row to column; None where there is no link."""
        if self.file is None:
            return [[self._between(here, there) for there in nodes] for here in nodes]
        rows: list[list[float | None]] = [[None] * len(nodes) for _ in nodes]
        for _, source, destination, loss_db in _read_file(self.file, nodes, timed=False):
            rows[source][destination] = loss_db
        return rows

    def findings(self, nodes: tuple[str, ...]) -> list[Finding]:
        if self.file is not None:
            return _file_findings(self.file, nodes, timed=False)
        known = frozenset(nodes)
        losses = self.losses or {}
        named: list[tuple[str, ...]] = [(source,) for source in losses]
        named += [(source, node) for source, row in losses.items() for node in row]
        return [
            Finding(("losses", *at), f"there is no node {shown(at[-1])}", did_you_mean(at[-1], nodes))
            for at in named
            if at[-1] not in known
        ]

    def _between(self, here: str, there: str) -> float | None:
        losses = self.losses or {}
        listed = losses.get(here, {}).get(there)
        return losses.get(there, {}).get(here) if listed is None else listed


class LossTrace(Section):
    """As a matrix, but changing over time: a line of the file holds from its time on."""

    model: Literal["trace"]
    file: TimedLossFile = Field(examples=["losses.csv"])

    def summary(self) -> str:
        return f"over time, as listed in {self.file.path.name}"

    def changes(self, nodes: tuple[str, ...]) -> tuple[LossChange, ...]:
        return _read_file(self.file, nodes, timed=True)

    def findings(self, nodes: tuple[str, ...]) -> list[Finding]:
        return _file_findings(self.file, nodes, timed=True)


def _file_findings(file: FileReference, nodes: tuple[str, ...], *, timed: bool) -> list[Finding]:
    try:
        _read_file(file, nodes, timed=timed)
    except TraceError as error:
        name = Path(error.file).name
        place = name if error.line is None else f"{name}, line {error.line}"
        return [Finding(("file",), f"{place}: {error.message}", error.hint)]
    return []


# The cells of a sweep are validated one by one, and mostly read the same file for the same nodes.
@lru_cache(maxsize=4)
def _read_file(file: FileReference, nodes: tuple[str, ...], *, timed: bool) -> tuple[LossChange, ...]:
    return read_losses(file.path, nodes, timed=timed)


PathLoss = Annotated[
    TwoRay | TwoRayGround | FreeSpace | LogDistance | Range | Matrix | LossTrace, Field(discriminator="model")
]
