"""Operators that move between brokers: whatever moves when, results are those of an observer who sees all."""

import itertools
import random
from collections.abc import Callable

import pytest

from benchmarks.mcep.rebuilding import Rebuilding
from benchmarks.mcep.worlds import World, world
from benchmarks.mcep_oracle import compared
from node_agent.apps.mcep.claims import Claims
from node_agent.apps.mcep.interest import QualityAware
from node_agent.apps.mcep.messages import Said
from node_agent.apps.mcep.moving.messages import Happened
from node_agent.apps.mcep.moving.settings import Migration, Scheduled
from node_agent.migration.live.values import Method
from tests.unit.node_agent.apps.mcep.test_roles import Town, check_results

pytestmark = [pytest.mark.unit, pytest.mark.timeout(120)]


def worlds(count: int) -> list[World]:
    """Strict queries without suppression."""
    found = []
    for seed in itertools.count(1):
        given = world(seed, suppression=False)
        strict = given.query.policy.is_strict and not isinstance(given.condition, QualityAware)
        if strict and given.points == "basic":
            found.append(given)
        if len(found) == count:
            return found
    return found


def often(given: World, method: Method = Method.LIVE) -> Callable[[random.Random, list[str]], Migration]:
    """Operators move at random, each few seconds."""

    def migration(draw: random.Random, names: list[str]) -> Migration:
        operators = list(given.query.graph.by_name)
        times = sorted(draw.uniform(0, given.end) for _ in range(12))
        moves = tuple(Scheduled(t, draw.choice(operators), draw.choice(names)) for t in times)
        state = {name: draw.choice([0, 1000, 300_000]) for name in operators}
        return Migration(method, state, moves)

    return migration


class Watched(Town):
    """Holds each message against what its sender may say, and remembers what happened."""

    def __init__(self, given: World, method: Method = Method.LIVE) -> None:
        super().__init__(given, migration=often(given, method))
        self.happened: list[Happened] = []
        deployment = next(iter(self.brokers.values())).deployment
        self._claims = {name: Claims(name, deployment) for name in (*self.brokers, *self.clients)}
        for broker in self.brokers.values():
            broker.report_to(self.happened.append)

    def arrive(self, sender: str, to: str, said: Said) -> None:
        assert self._claims[to].refusal(sender, said) is None, (sender, to, said)
        super().arrive(sender, to, said)

    def moved(self) -> list[Happened]:
        return [each for each in self.happened if each.what == "ended" and each.detail == "moved"]


@pytest.mark.parametrize("given", worlds(20), ids=lambda given: str(given.seed))
def test_an_operator_made_again_makes_the_same_outputs(given: World) -> None:
    network = Rebuilding(given)
    outcome = network.run()
    assert network.moves and not network.differed and not outcome.stalled
    assert not any(compared(given, outcome).values())


@pytest.mark.parametrize("given", worlds(40), ids=lambda given: str(given.seed))
def test_results_do_not_depend_on_where_operators_are(given: World) -> None:
    town = Watched(given, [Method.LIVE, Method.STOP_AND_COPY][given.seed % 2])
    town.play()
    check_results(town)
    assert town.moved()


def test_an_operator_whose_windows_cannot_be_said_in_short_moves_all_the_same() -> None:
    given = worlds(1)[0]
    network = Rebuilding(given, most_note=50)
    outcome = network.run()
    assert network.moves and not network.differed and not any(compared(given, outcome).values())
