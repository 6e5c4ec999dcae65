"""What the plans of a run ask of one node.

A *stream* is what one node sends another one for a task: the instances of an event, or those that a junction
detects. It goes over the nodes of its path; instances go forward, requests and what is said of them back.
"""

from msgspec import Struct

MARKS_S = 5.0
"""Seconds: while a contact is up, a node says at least so often how far streams of absent events are
complete. The delay that plans promise for patterns with negation includes it.
"""
MOMENT = 0.01
"""Seconds after the end of an interval at which it is known what was in it."""
OTHER_MARKS_S = 30.0
"""The same of other streams, whose completeness only tells what may be forgotten."""


class Stream(Struct, frozen=True):
    """``path``: from the node that sends to the node that gets it; one node if both are the same.

    ``pulled``: it carries only what was asked for. ``absent``: a negation watches its event.
    ``priority``: if stores are full, lower ones are dropped first.
    """

    number: int
    task: int
    events: tuple[str, ...]
    path: tuple[str, ...]
    pulled: bool = False
    absent: bool = False
    priority: int = 0

    @property
    def origin(self) -> str:
        return self.path[0]

    @property
    def end(self) -> str:
        return self.path[-1]

    def after(self, node: str) -> str | None:
        """The next node on the way of instances."""
        place = self.path.index(node) + 1
        return self.path[place] if place < len(self.path) else None

    def before(self, node: str) -> str | None:
        """The next node on the way of requests."""
        place = self.path.index(node)
        return self.path[place - 1] if place else None


class TaskPlan(Struct, frozen=True):
    """One alternative of a requested pattern. ``pattern``: as text, without ``or`` outside negations."""

    number: int
    request: str
    pattern: str
    sink: str


class JunctionPlan(Struct, frozen=True):
    """A task's junction on this node.

    ``steps``: numbers of the streams pushed to it, then of those it pulls, in order. ``out``: the stream of
    what it detects; None: it is the sink. ``absent``: the streams of watched events, at the sink.
    """

    task: int
    steps: tuple[tuple[int, ...], ...]
    out: int | None = None
    absent: tuple[int, ...] = ()


class StoreLimits(Struct, frozen=True):
    """``waiting``: bytes that wait for one neighbour. ``kept``: instances kept for one stream or junction.

    ``event``, ``request``: bytes of an instance and of a request on a link.
    """

    waiting: int = 16 * 1024 * 1024
    kept: int = 100_000
    event: int = 1000
    request: int = 50


class NodePlan(Struct, frozen=True):
    """``streams``: all whose path the node is on. ``own``: the events that occur here."""

    node: str
    tasks: tuple[TaskPlan, ...] = ()
    streams: tuple[Stream, ...] = ()
    junctions: tuple[JunctionPlan, ...] = ()
    limits: StoreLimits = StoreLimits()

    @property
    def neighbours(self) -> tuple[str, ...]:
        found = {
            other
            for stream in self.streams
            for other in (stream.after(self.node), stream.before(self.node))
            if other is not None
        }
        return tuple(sorted(found))
