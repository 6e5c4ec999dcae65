"""Queries that share equal selections deliver what each would deliver alone, however long messages take."""

import itertools

import pytest

from benchmarks.mcep.worlds import World, world
from node_agent.apps.mcep.interest import QualityAware
from node_agent.apps.mcep.model import Event, Quality
from node_agent.apps.mcep.reuse.batches import Counted, Timed
from node_agent.apps.mcep.reuse.checks import sharing_problem
from node_agent.apps.mcep.reuse.deciding import Work
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.manager import Settings
from tests.unit.node_agent.apps.mcep.test_roles import Town, check_results

pytestmark = pytest.mark.unit

EQUAL = Rules(Quality(1.0, 1.0), times="overlapping")
WAYS = [
    Settings(EQUAL, "none"),
    Settings(EQUAL, "similarity"),
    Settings(EQUAL, "neighbour"),
    Settings(Rules(Quality(1.0, 1.0), every=True), "neighbour", Counted(3)),
    Settings(Rules(Quality(1.0, 1.0), every=True), "similarity", Timed(2.0)),
]


def worlds(number: int) -> list[World]:
    found = []
    for seed in itertools.count(1):
        given = world(seed, suppression=False)
        strict = given.query.policy.is_strict and not isinstance(given.condition, QualityAware)
        shares = any(sharing_problem(each) is None for each in given.query.graph.operators)
        if strict and given.points == "basic" and shares:
            found.append(given)
        if len(found) == number:
            break
    return found


@pytest.mark.parametrize("given", worlds(30), ids=lambda given: str(given.seed))
def test_results_are_those_without_reuse(given: World) -> None:
    town = Town(given, queries=3, settings=WAYS[given.seed % len(WAYS)])
    if given.seed % 2:
        link = (given.sensors[0], next(iter(town.brokers)))
        town.net.at(given.end / 3, lambda: town.net.cut.add(link))
        town.net.at(given.end / 2, lambda: town.net.mend(link))
    town.play()
    every = town.walker.results[:]
    names = [given.query.name, *(f"{given.query.name}{number}" for number in (2, 3))]
    found = [[(d.epoch, _facts(d.event)) for query, d in every if query == name] for name in names]
    if given.query.policy.order != "spatiotemporal":
        found = [sorted(each, key=repr) for each in found]
    assert found[0] == found[1] == found[2]
    own = [each for each in every if each[0] == given.query.name]
    town.walker.results[:] = own
    check_results(town)
    assert not any(broker.done().waiting for broker in town.brokers.values()), "all is decided"


def test_equal_selections_are_processed_once() -> None:
    """Those without events are not shared, and so are not all that come of operators that cannot share."""
    offered = processed = 0
    for given in worlds(8):
        town = Town(given, queries=3, settings=WAYS[2])
        town.play()
        works = [each.work for broker in town.brokers.values() for each in broker.managers.values()]
        offered += sum(each.offered for each in works)
        processed += sum(each.processed for each in works)
    assert processed < 0.7 * offered


def test_how_long_messages_take_changes_no_decision() -> None:
    """Also where results differ from those without reuse: queries of objects that are not at one place."""
    for given in worlds(4):
        settings = Settings(Rules(Quality(0.3, 0.3), times="overlapping"), "neighbour")
        found = []
        for luck in range(3):
            town = Town(given, luck, queries=3, settings=settings, apart=True)
            town.play()
            results = [(name, d.epoch, _facts(d.event)) for name, d in town.walker.results]
            found.append((sorted(results, key=repr), _works(town)))
        assert found[0] == found[1] == found[2]
        assert any(pairs for _, pairs in found[0][1].values())


def _works(town: Town) -> dict[str, tuple[Work, tuple[tuple[str, str], ...]]]:
    return {
        name: (each.work, tuple(each.pairs))
        for broker in town.brokers.values()
        for name, each in broker.managers.items()
    }


def _facts(event: Event) -> tuple[object, ...]:
    facts = sorted(event.attributes.items())
    return event.t, event.seq, event.source, event.type, event.place, facts, sorted(event.provenance)
