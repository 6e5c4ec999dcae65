"""Reads the ground truth of links: when each came up, changed its cost or went down."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from node_agent.model.checked import Checked, Refused
from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in, open_regular


class LinkLine(NamedTuple):
    """``up``: whether the link from ``src`` to ``dst`` is there from then on. ``cost``: in transmissions, if
    known.
    """

    t_ns: int
    src: str
    dst: str
    up: bool
    cost: float | None


class _Line(msgspec.Struct):
    t_ns: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    src: str
    dst: str
    up: bool
    cost: float | None = None


_line: Checked[_Line] = Checked(_Line, LONGEST_LINE)


def read_link_lines(links: Path) -> Iterator[LinkLine]:
    """Yields the lines of ``links.jsonl`` in their order; ignores those that cannot be read."""
    try:
        file = open_regular(links)
    except OSError:
        return
    with file:
        for text in lines_in(file):
            try:
                line = _line.decode(text or b"")
            except Refused:  # the last line of a run that was killed may be cut
                continue
            yield LinkLine(line.t_ns, line.src, line.dst, line.up, line.cost)
