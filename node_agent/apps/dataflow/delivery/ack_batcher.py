"""Collects acknowledgements for a moment, to send each replica few messages with few ranges."""

from collections.abc import Iterator
from itertools import zip_longest

from node_agent.apps.dataflow.delivery.effects import Acknowledge, Ranges
from node_agent.apps.dataflow.delivery.positions import Positions, Range
from node_agent.apps.dataflow.wire.claims import MOST_RANGES
from node_agent.apps.dataflow.wire.messages import Acknowledgement

_ByStream = dict[str, Positions]


class AckBatcher:
    """The order and the age of acknowledgements do not matter: whatever they say stays true."""

    def __init__(self) -> None:
        self._acks: dict[str, tuple[_ByStream, _ByStream]] = {}

    def add(self, report: Acknowledge) -> None:
        done, taken = self._acks.setdefault(report.replica, ({}, {}))
        _add(done, report.done)
        _add(taken, report.taken)

    def take(self) -> Iterator[tuple[str, Acknowledgement]]:
        """Removes all acknowledgements. Yields each replica with its messages, as few as frames can carry."""
        reports, self._acks = self._acks, {}
        for to, (done, taken) in reports.items():
            for some_done, some_taken in zip_longest(_in_parts(done), _in_parts(taken)):
                yield to, Acknowledgement(some_done or {}, some_taken or {})


def _add(known: _ByStream, ranges: Ranges) -> None:
    for origin, parts in ranges.items():
        positions = known.setdefault(origin, Positions())
        for first, last in parts:
            positions.add(first, last)


def _in_parts(known: _ByStream) -> Iterator[dict[str, list[Range]]]:
    """Yields the positions in parts of at most ``MOST_RANGES`` ranges."""
    part: dict[str, list[Range]] = {}
    room = MOST_RANGES
    for origin, positions in known.items():
        ranges = list(positions)
        while len(ranges) > room:
            part[origin] = ranges[:room]
            yield part
            ranges, part, room = ranges[room:], {}, MOST_RANGES
        part[origin] = ranges
        room -= len(ranges)
    if part:
        yield part
