"""Acknowledgements that gather for a moment: what belongs together is told in one message, in few ranges."""

from collections.abc import Sequence

from node_agent.delivery.effects import Acknowledge, Ranges
from node_agent.delivery.positions import Positions, Range
from node_agent.transport.messages import Acknowledgement

_ByStream = dict[str, Positions]


class Reports:
    """All that is told is true for good, so that it matters neither in which order nor how late."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[_ByStream, _ByStream]] = {}

    def add(self, report: Acknowledge) -> None:
        done, taken = self._reports.setdefault(report.replica, ({}, {}))
        _add(done, report.done)
        _add(taken, report.taken)

    def take(self) -> list[tuple[str, Acknowledgement]]:
        """All there are, with whom to tell."""
        reports, self._reports = self._reports, {}
        return [(to, Acknowledgement(_told(done), _told(taken))) for to, (done, taken) in reports.items()]


def _add(known: _ByStream, ranges: Ranges) -> None:
    for origin, parts in ranges.items():
        positions = known.setdefault(origin, Positions())
        for first, last in parts:
            positions.add(first, last)


def _told(known: _ByStream) -> dict[str, Sequence[Range]]:
    return {origin: list(positions) for origin, positions in known.items()}
