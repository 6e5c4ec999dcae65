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
from node_agent.apps.mcep.moving.messages import Happened, Hosted, Moves
from node_agent.apps.mcep.moving.settings import Distances, Migration, Planning, Scheduled
from node_agent.migration.live.values import Method
from node_agent.migration.situation import network
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


Moving = Callable[[random.Random, list[str]], Migration]


def often(given: World, method: Method = Method.LIVE) -> Moving:
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

    def __init__(self, given: World, migration: Moving) -> None:
        super().__init__(given, migration=migration)
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
    town = Watched(given, often(given, [Method.LIVE, Method.STOP_AND_COPY][given.seed % 2]))
    town.play()
    check_results(town)
    assert town.moved()


def test_an_operator_whose_windows_cannot_be_said_in_short_moves_all_the_same() -> None:
    given = worlds(1)[0]
    network = Rebuilding(given, most_note=50)
    outcome = network.run()
    assert network.moves and not network.differed and not any(compared(given, outcome).values())


PLANS = [
    Planning(policy, mobiles, step=1.0, steps=10, refresh=3.0, route=(((500.0, 500.0), 0.0),))
    for policy in ("weighted_sum", "naive", "k_shortest")
    for mobiles in ("linear", "navigation", "learned")
]


@pytest.mark.parametrize("given", worlds(18), ids=lambda given: str(given.seed))
def test_operators_follow_plans_that_they_agree_on(given: World) -> None:
    planning = PLANS[given.seed % len(PLANS)]

    def migration(draw: random.Random, names: list[str]) -> Migration:
        distances = network(tuple(names), lambda a, b: 0.001 * abs(int(a[1:]) - int(b[1:])))
        return Migration(distances=Distances(distances), planning=planning, room={names[0]: 1})

    town = Watched(given, migration)
    town.play()
    check_results(town)
    operators = [each.moving[given.query.name] for each in town.brokers.values()]
    assert sum(each.planning for each in operators) > 0
    assert sorted(name for each in operators for name in each.owned) == sorted(given.query.graph.by_name)


def test_who_plans_hears_of_a_move_in_an_order_that_does_not_change() -> None:
    """A set of names has another order in each process, and runs in virtual time could differ."""
    told: list[tuple[list[str], list[str]]] = []

    class Listening(Watched):
        def send(self, sender: str, sent: list[tuple[str, Said]]) -> None:
            hosted = [to for to, said in sent if isinstance(said, Moves) and isinstance(said.said, Hosted)]
            (deployed,) = self.brokers[sender].deployment.queries if sender in self.brokers else (None,)
            if hosted and deployed is not None:
                places = dict.fromkeys([*deployed.hosts.values(), deployed.home])
                told.append((hosted, [each for each in places if each != sender]))
            super().send(sender, sent)

    for given in worlds(18):
        Listening(given, lambda draw, names: Migration(greedy=2.0)).play()
    assert all(heard == places * (len(heard) // len(places)) for heard, places in told)
    assert sum(len(places) > 2 for _, places in told) > 5


def test_greedy_operators_go_where_it_is_cheapest_now() -> None:
    moved = 0
    for given in worlds(8):
        town = Watched(given, lambda draw, names: Migration(Method.STOP_AND_COPY, greedy=2.0))
        town.play()
        check_results(town)
        moved += len(town.moved())
    assert moved


def in_order(count: int) -> list[World]:
    return [each for each in worlds(40) if each.query.policy.order == "spatiotemporal"][:count]


@pytest.mark.parametrize("given", in_order(12), ids=lambda given: str(given.seed))
def test_a_broker_that_is_gone_stalls_results_and_spoils_none(given: World) -> None:
    whole = Watched(given, often(given))
    whole.play()
    rough = Watched(given, often(given))
    draw = random.Random(f"gone {given.seed}")
    gone = draw.choice(list(rough.brokers))
    others = [each for each in (*rough.brokers, *rough.clients) if each != gone]
    links = {link for each in others for link in ((each, gone), (gone, each))}
    rough.net.at(draw.uniform(0.2, 0.8) * given.end, lambda: rough.net.cut.update(links))
    rough.play()
    wanted = [each for _, each in whole.walker.results]
    found = [each for _, each in rough.walker.results]
    assert found == wanted[: len(found)]


@pytest.mark.parametrize("given", worlds(8), ids=lambda given: str(given.seed))
def test_brokers_that_cannot_reach_each_other_for_a_while_change_no_result(given: World) -> None:
    town = Watched(given, often(given))
    draw = random.Random(f"cut {given.seed}")
    for _ in range(6):
        link = tuple(draw.sample(list(town.brokers), 2))
        at = draw.uniform(0, given.end)
        town.net.at(at, lambda link=link: town.net.cut.add(link))  # type: ignore[misc]
        town.net.at(at + draw.uniform(0.5, 6.0), lambda link=link: town.net.mend(link))  # type: ignore[misc]
    town.play()
    check_results(town)
