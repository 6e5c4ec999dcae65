"""Decides whether one batch of selections may stand for another, and counts the estimates it makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from node_agent.apps.mcep.model import McepError, Quality
from node_agent.apps.mcep.reuse.batches import Batch, counterparts
from node_agent.apps.mcep.reuse.incomplete import Share, chance, completed, pessimistic
from node_agent.apps.mcep.reuse.similarity import (
    OF_OPERATORS,
    Candidate,
    Estimate,
    Overlap,
    by_atoms,
    suffices,
)

Times = Literal["any", "overlapping", "same_end"]


@dataclass(frozen=True, slots=True)
class Rules:
    """When a selection may stand for another.

    ``least``: precision and recall must be above this; ``by_operator``: for operators whose query asks for
    something else. The threshold is that of the query that is covered. ``share``: how many missing events
    are expected in both. ``sure``: how likely an incomplete selection must suffice, judged by recent events
    instead of ``share``. ``later``: missing events come after those that are known, so a complete selection
    has none of them; the thesis does not consider that. ``every``: each selection of a batch must suffice,
    not only their average. ``times``: which selections are held against each other at all; ``any`` is what
    the thesis does. ``strict``: equal selections do not stand for each other either if the threshold is 1.
    """

    least: Quality = Quality(0.5, 0.5)  # noqa: RUF009
    by_operator: Mapping[str, Quality] = field(default_factory=dict)
    estimate: Estimate = by_atoms
    share: Share = pessimistic
    sure: float | None = None
    later: bool = False
    every: bool = False
    times: Times = "any"
    strict: bool = False

    def __post_init__(self) -> None:
        every = (self.least, *self.by_operator.values())
        if not all(0 <= share <= 1 for each in every for share in (each.precision, each.recall)):
            raise McepError("precision and recall that are asked for are between 0 and 1")
        if self.sure is not None and not 0 <= self.sure < 1:
            raise McepError(f"how sure a prediction must be is between 0 and below 1, not {self.sure!r}")

    @property
    def asks_for_equal(self) -> bool:
        """Whether some query takes nothing but results of equal selections."""
        return any(max(q.precision, q.recall) >= 1 for q in (self.least, *self.by_operator.values()))


class Judge:
    """``comparisons``: estimates of two selections, or of two operators, so far."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.comparisons = 0

    def covers(self, used: Batch, wanted: Batch) -> bool:
        """Whether results of ``used`` may be given for those of ``wanted``."""
        least = self.rules.by_operator.get(wanted.operator, self.rules.least)
        if self.rules.estimate in OF_OPERATORS:
            pairs = [(used.selections[-1], wanted.selections[-1])]
        else:
            pairs = counterparts(used, wanted)
        if max(least.precision, least.recall) >= 1:
            return self._are_equal(pairs)
        precision = recall = 0.0
        for mine, theirs in pairs:
            found = self._quality(mine, theirs, least)
            if found is None or (self.rules.every and not suffices(found, least, self.rules.strict)):
                return False
            precision, recall = precision + found.precision, recall + found.recall
        mean = Quality(precision / len(pairs), recall / len(pairs))
        return suffices(mean, least, self.rules.strict)

    def _are_equal(self, pairs: Sequence[tuple[Candidate, Candidate]]) -> bool:
        """Nothing is above 1, so only equal selections are left: the same events, as far as they are known.
        Two that merely depend on the same atomic events can give different results."""
        self.comparisons += len(pairs)
        if self.rules.strict:
            return False
        return all(
            mine.content == theirs.content
            if mine.content is not None and theirs.content is not None
            else self.rules.estimate(theirs, mine).quality == Quality(1.0, 1.0)
            for mine, theirs in pairs
        )

    def _quality(self, used: Candidate, wanted: Candidate, least: Quality) -> Quality | None:
        """None if a selection is empty: its result says something about its own region only."""
        self.comparisons += 1
        now = self.rules.estimate(wanted, used)
        if wanted.missing or used.missing:
            if self.rules.sure is not None:
                return Quality(1.0, 1.0) if self._is_likely(now, used, wanted, least) else None
            share = self.rules.share(wanted, used, now)
            now = completed(now, wanted.missing, used.missing, share, self.rules.later)
        return now.quality if now.wanted and now.used else None

    def _is_likely(self, now: Overlap, used: Candidate, wanted: Candidate, least: Quality) -> bool:
        assert self.rules.sure is not None
        shared, recent = len(wanted.recent & used.recent), len(wanted.recent)
        later = self.rules.later
        return chance(now, wanted.missing, used.missing, shared, recent, least, later) > self.rules.sure
