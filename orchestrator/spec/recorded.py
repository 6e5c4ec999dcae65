"""Movements from a file: the ``trace`` model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from orchestrator.mobility.bonnmotion import params_file
from orchestrator.mobility.formats import TraceFormat, format_of, read_trace
from orchestrator.mobility.trace import Area, Trace
from orchestrator.spec.file_reference import FileReference, reader
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.source_file import MOST_BYTES, read_bytes


@dataclass(frozen=True)
class TraceFile(FileReference):
    def contents(self) -> dict[str, bytes]:
        """The file, and the parameters that BonnMotion keeps beside it."""
        beside = params_file(self.path)
        return super().contents() | ({beside.name: read_bytes(beside, MOST_BYTES)} if beside.exists() else {})


TraceFileField = Annotated[
    TraceFile,
    PlainValidator(reader(TraceFile, "walk.movements")),
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
