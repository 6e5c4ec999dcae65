"""The mobility model ``trace``: movements from a file."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from orchestrator.mobility.bonnmotion import params_file
from orchestrator.mobility.fcd import parse_fcd
from orchestrator.mobility.formats import FORMATS, TraceFormat, format_of, read_trace
from orchestrator.mobility.trace_file import TraceError, read_text
from orchestrator.model.trace import Area, Drives, Trace
from orchestrator.spec import area as spec
from orchestrator.spec.file_reference import FileReference, reader, with_format
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.problems import Finding, listed
from orchestrator.spec.source_file import MOST_BYTES, read_bytes


@dataclass(frozen=True)
class TraceFile(FileReference):
    def contents(self) -> dict[str, bytes]:
        """Returns the file and, with BonnMotion, the parameters beside it."""
        beside = params_file(self.path)
        return super().contents() | ({beside.name: read_bytes(beside, MOST_BYTES)} if beside.exists() else {})


TraceFileField = Annotated[
    TraceFile,
    PlainValidator(reader(TraceFile, "walk.movements")),
    PlainSerializer(lambda file: str(file.path)),
    WithJsonSchema({"type": "string", "description": "A trace file, relative to this one"}),
]


class RecordedTrace(MobilityModel):
    """Movements read from a file. Its nodes are the topology's, in the same order."""

    model: Literal["trace"]
    file: TraceFileField = Field(examples=["walk.movements"])
    format: TraceFormat | None = Field(default=None, description="Told by the file's name if not given")

    @model_validator(mode="before")
    @classmethod
    def _with_format(cls, value: Any) -> Any:
        return with_format(value, format_of, f"add format: {listed(FORMATS)}")

    def trace(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Trace:
        """Returns the trace. Raises ``TraceError`` if it does not fit these nodes and this area."""
        return self._read(nodes, area)

    def drives(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Drives:
        """Returns the movements; SUMO's own format has speeds and lanes, too."""
        if self.format != "fcd":
            return super().drives(nodes, area, seed, until)
        vehicles = parse_fcd(read_text(self.file.path), str(self.file.path), area)
        return dict(zip(self._read(nodes, area).paths, vehicles.values(), strict=False))

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        try:
            self._read(nodes, area)
        except TraceError as error:
            name = Path(error.file).name
            place = name if error.line is None else f"{name}, line {error.line}"
            return [Finding(("mobility", "file"), f"{place}: {error.message}", error.hint)]
        return []

    def _read(self, nodes: tuple[str, ...], area: Area) -> Trace:
        assert self.format is not None, "the validator takes it from the file's name"
        return _read(self.file, self.format, nodes, area)

    def summary(self) -> str:
        return f"trace {self.file.path.name} ({self.format})"

    def summary_for(self, nodes: tuple[str, ...], area: spec.Area) -> str:
        paths = self._read(nodes, area).paths.values()
        return f"{self.summary()}, standing still after {max(path[-1].t for path in paths):g} s"


# The cells of a sweep are validated one by one, and mostly read the same file for the same nodes.
@lru_cache(maxsize=4)
def _read(file: TraceFile, written_as: TraceFormat, nodes: tuple[str, ...], area: Area) -> Trace:
    return read_trace(file.path, written_as, nodes, area)
