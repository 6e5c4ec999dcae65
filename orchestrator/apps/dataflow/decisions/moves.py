"""Says which operators had moved by a given time, or were on their way: by what hosts recorded."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.events import MigrationStep
from node_agent.apps.dataflow.model.plan import operator_of
from node_agent.telemetry.kinds import tag_of

MIGRATION = tag_of(MigrationStep)


class Told(NamedTuple):
    """A step of a migration, as it was recorded."""

    t_ns: int
    node: str
    replica: str
    migration: int
    step: str
    detail: str
    source: str
    target: str


class Moved(Struct, frozen=True):
    """A migration that was ordered by then. ``outcome``: empty while it is under way. ``node``: where the
    operator is."""

    operator: str
    number: int
    method: str
    source: str
    target: str
    ordered_s: float
    ended_s: float | None
    outcome: str
    node: str

    def in_words(self) -> str:
        way = f"{self.operator} from {self.source} to {self.target}"
        if not self.outcome:
            where = f"it is on {self.node} now"
            return f"migration {self.number} ({self.method}): {way} since {self.ordered_s:.1f} s; {where}"
        took = f"ordered at {self.ordered_s:.1f} s, ended at {self.ended_s:.1f} s"
        return f"migration {self.number} ({self.method}): {way}, {took}: {self.outcome.replace('_', ' ')}"


def moved_by(told: Iterable[Told], at_ns: int, zero_ns: int) -> tuple[Moved, ...]:
    """The last migration of each operator that was ordered by then."""
    by_number: dict[tuple[str, int], list[Told]] = {}
    for step in sorted(told):
        if step.t_ns <= at_ns:
            by_number.setdefault((step.replica, step.migration), []).append(step)
    last: dict[str, Moved] = {}
    for (replica, _), steps in sorted(by_number.items()):
        for made in _made(replica, steps, zero_ns):
            last[replica] = made
    return tuple(last.values())


def _made(replica: str, steps: list[Told], zero_ns: int) -> Iterator[Moved]:
    ordered = next((step for step in steps if step.step == "ordered"), None)
    if ordered is None:
        return
    hosts = [step.node for step in steps if step.step in ("took_over", "took_back")]
    ended = [step for step in steps if step.step == "finished"]
    yield Moved(
        operator_of(replica),
        ordered.migration,
        ordered.detail,
        ordered.source,
        ordered.target,
        (ordered.t_ns - zero_ns) / 1e9,
        (ended[-1].t_ns - zero_ns) / 1e9 if ended else None,
        ended[-1].detail if ended else "",
        hosts[-1] if hosts else ordered.source,
    )
