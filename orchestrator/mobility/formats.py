"""Reads and writes trace files of both formats. If no format is given, the file's name decides."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from orchestrator.errors import BadInput
from orchestrator.mobility.bonnmotion import read_bonnmotion, write_bonnmotion
from orchestrator.mobility.ns2 import read_ns2, write_ns2
from orchestrator.model.trace import Area, Trace

TraceFormat = Literal["bonnmotion", "ns2"]
SUFFIXES: dict[str, TraceFormat] = {
    ".movements": "bonnmotion",
    ".ns_movements": "ns2",
    ".ns2": "ns2",
    ".scen": "ns2",
    ".tcl": "ns2",
}


def format_of(name: str) -> TraceFormat | None:
    """Returns the format that a file's name stands for; a trailing .gz only means that it is compressed."""
    return SUFFIXES.get(Path(name.lower().removesuffix(".gz")).suffix)


def read_trace(file: Path, written_as: TraceFormat, nodes: Sequence[str], area: Area) -> Trace:
    return (read_ns2 if written_as == "ns2" else read_bonnmotion)(file, nodes, area)


def write_trace(file: Path, trace: Trace, area: Area, duration: float) -> None:
    written_as = format_of(file.name)
    if written_as is None:
        raise BadInput(
            f"{file}: the name does not tell the format; it ends in {', '.join(SUFFIXES)} or … .gz"
        )
    try:
        if written_as == "ns2":
            write_ns2(file, trace)
        else:
            write_bonnmotion(file, trace, area, duration)
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from error
