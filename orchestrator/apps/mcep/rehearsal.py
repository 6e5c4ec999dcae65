"""What a run must deliver under strict completeness, computed from its plan without a network.

``due_s``: when a result could be known first, in seconds of the drives.
"""

from typing import NamedTuple

from msgspec.structs import replace

from node_agent.apps.mcep.config import deployment_of, readings_of
from orchestrator.apps.mcep.plan import Recorded
from orchestrator.apps.mcep.stage import Stage


class Expected(NamedTuple):
    """A result: the epoch, its type and time, and the events that it was made of."""

    epoch: int
    type: str
    at_ns: int
    ancestors: tuple[str, ...]
    due_s: float


class Rehearsal:
    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        settings = recorded.settings
        stay = tuple(replace(each, migrate=None) for each in settings.queries)  # where they are is the same
        self._stage = Stage(deployment_of(replace(settings, queries=stay)))
        self.brokers = self._stage.brokers

    def play(self) -> dict[str, list[Expected]]:
        """Results by query, in the order in which they are delivered."""
        recorded = self._recorded
        readings = {name: readings_of(recorded.config(name)) for name in recorded.settings.clients}
        self._stage.play(readings, recorded.settings.until)
        return self._results()

    def _results(self) -> dict[str, list[Expected]]:
        found: dict[str, list[Expected]] = {}
        for query in self._recorded.settings.queries:
            starts = {marker.epoch: marker.t for marker in self.brokers[query.home].markers(query.name)}
            found[query.name] = [
                Expected(
                    each.epoch,
                    each.event.type,
                    round(each.event.t * 1e9),
                    tuple(f"{source}#{seq}" for source, seq in sorted(each.event.provenance)),
                    max(each.event.t, starts[each.epoch]),
                )
                for name, each in self._stage.clients[query.focal].results
                if name == query.name
            ]
        return found
