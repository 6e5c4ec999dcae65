"""Reads the ground truth of links: when each came up, changed its cost or went down."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from node_agent.model.checked import Checked
from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import open_regular
from orchestrator.results.lines import blocks_in


class LinkLine(msgspec.Struct, frozen=True, gc=False):
    """``up``: whether the link from ``src`` to ``dst`` is there from then on. ``cost``: in transmissions, if
    known.
    """

    t_ns: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    src: str
    dst: str
    up: bool
    cost: float | None = None


_line: Checked[LinkLine] = Checked(LinkLine, LONGEST_LINE)


def read_link_lines(links: Path) -> Iterator[LinkLine]:
    """Yields the lines of ``links.jsonl`` in their order; ignores those that cannot be read."""
    try:
        file = open_regular(links)
    except OSError:
        return
    with file:
        for block in blocks_in(file, _line):  # the last line of a run that was killed may be cut
            yield from block.values
