"""What a broker reports of its selection managers."""

from collections.abc import Callable, Mapping

from node_agent.apps.mcep.reuse.deciding import Deciding
from node_agent.apps.mcep.reuse.deployed import split_key
from node_agent.model.telemetry import Event

NS = 1_000_000_000


class SelectionsDecided(Event, tag="selections_decided", frozen=True):
    """What a selection manager has decided since its agent started. ``selections``: of all its operators;
    ``processed``: of these, those that were correlated; the others got results of these. ``rounds``: periods
    with a decision. ``waited_ns``: from when selections could be known to the end of their period, together.
    ``disparity``: the mean of processed selections that are made of results; null without any."""

    part: str
    manager: str
    selections: int
    processed: int
    comparisons: int
    rounds: int
    waited_ns: int
    disparity: float | None


class SelectionsShared(Event, tag="selections_shared", frozen=True):
    """Selections of ``query`` that got results of selections of ``by``, since the agent of their manager
    started. ``precision``, ``recall``: means, by the ids of atomic events."""

    part: str
    manager: str
    by: str
    query: str
    selections: int
    precision: float
    recall: float


def manager_part(manager: str) -> str:
    return f"manager {manager}"


class ManagersReport:
    """Records what changed since the last time."""

    def __init__(self, record: Callable[[Event], None]) -> None:
        self._record = record
        self._told: dict[tuple[str, ...], int] = {}

    def sample(self, managers: Mapping[str, Deciding]) -> None:
        for name, each in managers.items():
            work, part = each.work, manager_part(name)
            if self._changed((name,), work.rounds):
                disparity = round(work.disparity / work.composed, 6) if work.composed else None
                numbers = (work.offered, work.processed, work.comparisons, work.rounds)
                self._record(SelectionsDecided(part, name, *numbers, round(work.waited_s * NS), disparity))
            for (by, of), pair in each.pairs.items():
                if self._changed((name, by, of), pair.count):
                    mean = round(pair.precision / pair.count, 6), round(pair.recall / pair.count, 6)
                    ends = split_key(by)[0], split_key(of)[0]
                    self._record(SelectionsShared(part, name, *ends, pair.count, *mean))

    def _changed(self, key: tuple[str, ...], count: int) -> bool:
        before, self._told[key] = self._told.get(key, 0), count
        return count != before
