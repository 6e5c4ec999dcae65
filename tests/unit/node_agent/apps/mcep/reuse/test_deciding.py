"""A selection manager at work: periods of the drives' time, bounded memory, and what operators cannot say."""

import math
from collections.abc import Sequence

import pytest

from node_agent.apps.mcep.geometry import Box, Point, Region
from node_agent.apps.mcep.model import Event, McepError, Quality, atomic
from node_agent.apps.mcep.reuse.batches import Timed
from node_agent.apps.mcep.reuse.deciding import LATE_S, Deciding
from node_agent.apps.mcep.reuse.deployed import Managed, Reuse
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.reuse.neighbours import Reach
from node_agent.apps.mcep.reuse.offers import Offer, Offered
from node_agent.apps.mcep.reuse.results import Sent
from node_agent.apps.mcep.situations import average_speed

pytestmark = pytest.mark.unit

MEAN = average_speed(readings=2).operators[0]
HERE = Box(0, 0, 100, 100)


def manager(names: Sequence[str] = ("a/mean", "b/mean"), **changes: object) -> Deciding:
    settings = changes.pop("settings", Settings(Rules(Quality(0.4, 0.4), times="overlapping")))
    reuse = Reuse(settings, (Managed("mean", "b1", tuple(names)),), **changes)  # type: ignore[arg-type]
    return Deciding(reuse.managers[0], reuse, dict.fromkeys(names, MEAN), {n: f"of {n}" for n in names})


def speed(number: int, t: float) -> Event:
    return atomic("speed", t, Point(1, 1), number, "car", {"speed": 1.0})


def offered(
    who: str,
    ends: Sequence[float] = (),
    upto: float = -math.inf,
    first: int = 0,
    region: Region | None = HERE,
) -> Offered:
    """Each selection has two new events, which end then."""
    events = [speed(2 * n + k, t - 0.1 + 0.1 * k) for n, t in enumerate(ends, first) for k in (0, 1)]
    offers = [Offer(t, (("readings", (2 * n, 2 * n + 1)),)) for n, t in enumerate(ends, first)]
    return Offered(who, 1, 0.0, region, tuple(events), tuple(offers), 2 * (first + len(ends)), upto)


def shares(sent: Sequence[Sent]) -> set[tuple[str, str, int]]:
    return {(broker, each.operator, each.number) for broker, found in sent for each in found.shares}


def test_a_period_is_decided_when_all_have_told_what_belongs_to_it() -> None:
    it = manager()
    it.offered(offered("a/mean", (0.5, 0.7), 1.2))
    assert it.look(1.5) == [] and it.waiting == 2
    it.offered(offered("b/mean", (0.5,), 0.9))
    assert it.look(1.5) == []
    it.offered(offered("b/mean", (), 1.0, first=1))
    assert shares(it.look(1.5)) == {
        ("of a/mean", "a/mean", 0),
        ("of a/mean", "a/mean", 1),
        ("of b/mean", "b/mean", 0),
    }
    assert (it.work.offered, it.work.processed, it.work.rounds) == (3, 2, 1)
    assert it.work.waited_s == pytest.approx(0.5 + 0.3 + 0.5)
    (pair,) = it.pairs.values()
    assert (pair.count, pair.precision, pair.recall) == (1, 1.0, 1.0)


def test_results_of_history_belong_to_the_period_of_the_switch() -> None:
    """Else a period would have to wait for switches that nobody knows of yet."""
    it = manager(("a/mean",))
    late = offered("a/mean", (0.5,), 8.0)._replace(since=7.5)
    it.offered(late)
    assert shares(it.look(8.0)) == {("of a/mean", "a/mean", 0)} and it.work.waited_s == 0.5


def test_who_says_nothing_is_not_waited_for_without_end() -> None:
    it = manager()
    it.offered(offered("a/mean", (0.5,), 100.0))
    assert it.look(1.0 + LATE_S - 0.1) == [] and it.look(math.inf) == []
    assert shares(it.look(1.0 + LATE_S)) == {("of a/mean", "a/mean", 0)}
    it.offered(offered("b/mean", (0.5,), 100.0))
    assert shares(it.look(100.0)) == {("of b/mean", "b/mean", 0)}, "it comes into a later period"


def test_all_is_decided_when_queries_end() -> None:
    settings = Settings(Rules(Quality(0.4, 0.4)), batching=Timed(10.0))
    it = manager(settings=settings, reach=Reach(neighbours=1))
    for who in ("a/mean", "b/mean"):
        it.offered(offered(who, (0.5, 3.5), 9.9))
    assert shares(it.look(9.9)) == set(), "its batch is not over"
    for who in ("a/mean", "b/mean"):
        it.offered(offered(who, (), 20.0, first=2))
    found = shares(it.look(20.0))
    assert len(found) == 4 and it.work.processed == 2
    for who in ("a/mean", "b/mean"):
        it.offered(offered(who, (21.5,), first=2))
        it.offered(offered(who, (), math.inf, first=3, region=None))
    assert len(shares(it.look(math.inf))) == 2
    assert it.waiting == 0 and not it._books["a/mean"].events and not it._here.graphs


GOOD = offered("a/mean", (0.5,), 1.0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (GOOD._replace(selections=(Offer(0.5, (("readings", (0, 2)),)),)), "events that were not told"),
        (GOOD._replace(selections=(Offer(0.5, (("readings", (0,)),)),)), "too few or too many events"),
        (GOOD._replace(selections=(Offer(0.5, (("readings", (0, 1, 0)),)),)), "too few or too many"),
        (GOOD._replace(selections=(Offer(0.5, (("other", (0, 1)),)),)), "other windows"),
        (GOOD._replace(selections=(Offer(0.5, ()),)), "other windows"),
        (GOOD._replace(region=None), "after its query ended"),
        (GOOD._replace(forget=99), "forgets events that it has not told"),
        (GOOD._replace(selections=GOOD.selections * 20_001), "more than 20000 selections"),
        (GOOD._replace(fresh=GOOD.fresh * 25_001), "more than 50000 events"),
    ],
)
def test_what_cannot_be_is_refused_and_kept_nowhere(said: Offered, words: str) -> None:
    it = manager()
    with pytest.raises(McepError, match=words):
        it.offered(said)
    assert it.waiting == 0 and not it._books["a/mean"].events


def test_a_broker_that_never_comes_to_an_end_fills_no_memory() -> None:
    """Its events are bounded even if it forgets none, and its selections even if nobody decides."""
    it = manager()
    with pytest.raises(McepError, match="more than 50000 events"):
        for number in range(60_000):
            it.offered(offered("a/mean", (0.5,), first=number)._replace(selections=(), forget=0))
    it = manager()
    with pytest.raises(McepError, match="more than 20000 selections"):
        for number in range(30_000):
            it.offered(offered("a/mean", (0.5,), first=number))
    it = manager(("a/mean",))
    it.offered(offered("a/mean", (0.5,), math.inf, region=HERE))
    with pytest.raises(McepError, match="goes on after its query ended"):
        it.offered(offered("a/mean", (0.6,), first=1))
