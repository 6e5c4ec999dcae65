"""Movements from a file: the ``trace`` model, and the reference to a file that it holds."""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from orchestrator.mobility.bonnmotion import params_file
from orchestrator.mobility.formats import TraceFormat, format_of, read_trace
from orchestrator.mobility.trace import Area, Trace
from orchestrator.mobility.trace_file import MOST_BYTES
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.source_file import Unreadable, read_bytes

FOLDER = "folder"
"""The key of the validation context for what relative references are relative to."""


@dataclass(frozen=True)
class TraceFile:
    """Two files of the same content are the same value, wherever they lie: a copy stands for its original."""

    path: Path = field(compare=False)
    """Absolute, so that the value means the same to everybody on this machine."""
    digest: str

    def contents(self) -> dict[str, bytes]:
        """By name: the file, and the parameters that BonnMotion keeps beside it."""
        contents = {self.path.name: read_bytes(self.path, MOST_BYTES)}
        beside = params_file(self.path)
        return contents | ({beside.name: read_bytes(beside, MOST_BYTES)} if beside.exists() else {})


def _read_reference(value: Any, info: ValidationInfo) -> TraceFile:
    if not isinstance(value, str):
        raise unusable(f"{shown(value)} is not the name of a file", "for example file: walk.movements")
    path = (info.context or {}).get(FOLDER, Path()).absolute() / value
    try:
        contents = TraceFile(path, "").contents()
    except Unreadable as error:
        raise unusable(f"{shown(value)}: {error.message}", error.hint) from None
    digests = [hashlib.sha256(content).hexdigest() for content in contents.values()]
    return TraceFile(path, " ".join(digests))


TraceFileField = Annotated[
    TraceFile,
    PlainValidator(_read_reference),
    PlainSerializer(lambda file: str(file.path)),
    WithJsonSchema({"type": "string", "description": "A trace file, relative to this one"}),
]


class RecordedTrace(MobilityModel):
    """Movements read from a file; its nodes are the topology's, in their order."""

    model: Literal["trace"]
    file: TraceFileField = Field(examples=["walk.movements"])
    format: TraceFormat | None = Field(default=None, description="Told by the file's name if not given")

    @model_validator(mode="before")
    @classmethod
    def _with_format(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("format") is not None:
            return value
        name = value.get("file")
        if not isinstance(name, str):
            return value
        written_as = format_of(name)
        if written_as is None:
            text = f"{shown(name)}: the name does not tell the format"
            raise unusable(text, "add format: bonnmotion or format: ns2", at=("file",))
        return {**value, "format": written_as}

    def read(self, nodes: tuple[str, ...], area: Area) -> Trace:
        """Raises ``TraceError`` if these nodes cannot move so in this area."""
        assert self.format is not None, "told by the name if by nobody else"
        return _read(self.file, self.format, nodes, area)

    def summary(self) -> str:
        return f"trace {self.file.path.name} ({self.format})"


# The cells of a sweep are validated one by one, and mostly read the same file for the same nodes.
@lru_cache(maxsize=4)
def _read(file: TraceFile, written_as: TraceFormat, nodes: tuple[str, ...], area: Area) -> Trace:
    return read_trace(file.path, written_as, nodes, area)
