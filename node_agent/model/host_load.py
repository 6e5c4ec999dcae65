"""One second of a machine's load, as the load probe measured it: a line of ``host.jsonl``."""

from bisect import bisect_left
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.model.checked import Checked, Long, Moment

FILE = "host.jsonl"
"""In a run's directory: for the machine that all nodes run on. In a node's record: for that node."""
LATE_MS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Upper edges of the bins in which wake-ups are counted. One more bin holds those that came later than
all.
"""
LONGEST_LINE = 4096

_LONGEST_S = 7 * 24 * 3600.0
"""A week: no run is longer."""

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=_LONGEST_S)]
Milliseconds = Annotated[float, Meta(ge=0.0, le=_LONGEST_S * 1e3)]
WakeUps = Annotated[int, Meta(ge=0, le=1_000_000)]


class LoadSample(Struct, frozen=True, omit_defaults=True):
    """Shares are of the ``seconds`` that ended at ``t_ns`` by the machine's own clock. None: not known there.

    ``waited``: some process that could run waited for a processor. ``group_waited``: the same for the run's
    own processes. ``group_delay_ms``: how long they waited each time they could run, on average.
    ``memory_stalled``, ``io_stalled``: every process that had work waited for memory or disk.
    ``work_waited``: the share of waiting in the time that a short piece of work took; measured only if the
    kernel does not report ``waited``. ``late``: wake-ups of the probe, by how late they came. ``step_ns``: by
    how much the clock was set.
    """

    t_ns: Moment
    seconds: Seconds
    late: tuple[WakeUps, ...]
    latest_ms: Milliseconds
    waited: Share | None = None
    group_waited: Share | None = None
    work_waited: Share | None = None
    memory_stalled: Share | None = None
    io_stalled: Share | None = None
    step_ns: Long = 0
    group_delay_ms: Milliseconds | None = None


_samples: Checked[LoadSample] = Checked(LoadSample, LONGEST_LINE)


def read_sample(line: bytes) -> LoadSample:
    """Decodes a line. Raises Refused."""
    return _samples.decode(line)


def late_bin(late_ms: float) -> int:
    return bisect_left(LATE_MS, late_ms)
