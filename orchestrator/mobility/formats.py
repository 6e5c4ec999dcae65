"""Reads and writes trace files. If no format is given, the file's name decides."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from orchestrator.errors import BadInput
from orchestrator.mobility.bonnmotion import read_bonnmotion, write_bonnmotion
from orchestrator.mobility.fcd import read_fcd
from orchestrator.mobility.ns2 import read_ns2, write_ns2
from orchestrator.model.trace import Area, Trace

TraceFormat = Literal["bonnmotion", "ns2", "fcd"]
FORMATS: tuple[TraceFormat, ...] = get_args(TraceFormat)
READERS: dict[TraceFormat, Callable[[Path, Sequence[str], Area], Trace]] = {
    "bonnmotion": read_bonnmotion,
    "ns2": read_ns2,
    "fcd": read_fcd,
}
SUFFIXES: dict[str, TraceFormat] = {
    ".movements": "bonnmotion",
    ".ns_movements": "ns2",
    ".ns2": "ns2",
    ".scen": "ns2",
    ".tcl": "ns2",
    ".fcd.xml": "fcd",
    ".fcd": "fcd",
}
WRITTEN = tuple(suffix for suffix, written_as in SUFFIXES.items() if written_as != "fcd")
"""Endings of names that Rove writes traces to."""


def format_of(name: str) -> TraceFormat | None:
    """Returns the format that a file's name stands for; a trailing .gz only means that it is compressed."""
    plain = name.lower().removesuffix(".gz")
    return next((format for suffix, format in SUFFIXES.items() if plain.endswith(suffix)), None)


def read_trace(file: Path, written_as: TraceFormat, nodes: Sequence[str], area: Area) -> Trace:
    return READERS[written_as](file, nodes, area)


def write_trace(file: Path, trace: Trace, area: Area, duration: float) -> None:
    written_as = format_of(file.name)
    if written_as is None:
        raise BadInput(f"{file}: the name does not tell the format; it ends in {', '.join(WRITTEN)} or … .gz")
    if written_as == "fcd":
        raise BadInput(f"{file}: Rove reads SUMO's format but does not write it; use {', '.join(WRITTEN)}")
    try:
        if written_as == "ns2":
            write_ns2(file, trace)
        else:
            write_bonnmotion(file, trace, area, duration)
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from error
