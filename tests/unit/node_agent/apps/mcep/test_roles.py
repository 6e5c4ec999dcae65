"""Brokers and clients: whatever messages take their time, results are those of an observer who sees all."""

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.mcep.oracle import Oracle
from benchmarks.mcep.worlds import SIDE, World, world
from node_agent.apps.mcep.areas import Areas, check_areas, grid
from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.channel import ChannelId, Heartbeat
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.interest import Always, QualityAware
from node_agent.apps.mcep.messages import (
    Answered,
    Known,
    Located,
    Ordered,
    Results,
    Said,
    Seen,
    Streamed,
    UpTo,
)
from node_agent.apps.mcep.model import Event, McepError, Quality, RegionFunction, atomic
from node_agent.apps.mcep.moving.settings import Migration
from node_agent.apps.mcep.prediction import Prediction
from node_agent.apps.mcep.progress import GONE, Progress
from node_agent.apps.mcep.reuse.checks import sharing_problem
from node_agent.apps.mcep.reuse.deployed import Managed, Reuse
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.switching import Held, Hold
from node_agent.apps.mcep.wire import decode, encode

AREA = Box(0, 0, SIDE, SIDE)


class Net:
    """Carries messages in order on each link, after a random while; a link that is cut keeps them."""

    def __init__(self, seed: int, delay: float) -> None:
        self.now = 0.0
        self.cut: set[tuple[str, str]] = set()
        self._draw, self._delay = random.Random(seed), delay
        self._count = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._free: dict[tuple[str, str], float] = {}
        self._kept: dict[tuple[str, str], list[Callable[[], None]]] = {}

    def at(self, t: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (t, next(self._count), action))

    def carry(self, link: tuple[str, str], action: Callable[[], None]) -> None:
        if link in self.cut:
            self._kept.setdefault(link, []).append(action)
            return
        arrival = max(self._free.get(link, 0.0), self.now + self._draw.uniform(0, self._delay))
        self._free[link] = arrival
        self.at(arrival, action)

    def mend(self, link: tuple[str, str]) -> None:
        self.cut.discard(link)
        for action in self._kept.pop(link, []):
            self.carry(link, action)

    def run(self) -> None:
        while self._due:
            self.now, _, action = heapq.heappop(self._due)
            action()


class Town:
    """A random world, played by brokers and clients. ``queries``: so many of the same object that ask for the
    same, on different brokers; ``settings``: their selections are shared. ``apart``: their regions are moved
    by 20 m each."""

    def __init__(
        self,
        given: World,
        luck: int = 0,
        prediction: Prediction | None = None,
        migration: Callable[[random.Random, list[str]], Migration] | None = None,
        queries: int = 1,
        settings: Settings | None = None,
        apart: bool = False,
    ) -> None:
        draw = random.Random(given.seed)
        names = [f"b{number}" for number in range(draw.randint(1 if migration is None else 2, 5))]
        hosts = {each.name: draw.choice(names) for each in given.query.graph.operators}
        moves = None if migration is None else migration(draw, names)
        deployed = Deployed(
            given.query, hosts, draw.choice(names), given.condition, prediction, migration=moves
        )
        self.given, self.home = given, deployed.home
        clients = (*given.sensors, given.query.focal_object)
        every = [deployed]
        for number in range(2, queries + 1):
            twin = replace(given.query, name=f"{given.query.name}{number}")
            if apart:
                twin = replace(twin, region=_moved(given.query.region, 20.0 * (number - 1)))
            moved = {each: draw.choice(names) for each in hosts}
            every.append(Deployed(twin, moved, draw.choice(names), given.condition, prediction))
        reuse = None
        if settings is not None:
            shared = [each.name for each in given.query.graph.operators if sharing_problem(each) is None]
            managers = [
                Managed(name, draw.choice(names), tuple(f"{each.name}/{name}" for each in every))
                for name in shared
            ]
            reuse = Reuse(settings, tuple(managers))
        deployment = Deployment(grid(names, AREA), clients, tuple(every), given.ttl, reuse)
        check_areas(deployment.areas, AREA)
        check_deployment(deployment)
        self.net = Net(given.seed + luck, given.delay * (1 + luck))
        self.brokers = {name: Broker(name, deployment) for name in names}
        self.clients = {name: Client(name, deployment.areas, {}) for name in given.sensors}
        self.walker = Client(
            given.query.focal_object, deployment.areas, {each.name: each.home for each in every}
        )
        self.clients[self.walker.name] = self.walker

    def send(self, sender: str, sent: list[tuple[str, Said]]) -> None:
        for to, said in [(to, decode(encode(said))) for to, said in sent]:
            self.net.carry((sender, to), lambda to=to, said=said: self.arrive(sender, to, said))  # type: ignore[misc]

    def arrive(self, sender: str, to: str, said: Said) -> None:
        if to in self.clients:
            self.send(to, self.clients[to].receive(sender, said))
            return
        self.send(to, self.brokers[to].receive(sender, said))
        if isinstance(said, Seen):
            self.net.carry((to, sender), lambda: self.clients[sender].acknowledged(to, said.events[-1].seq))

    def play(self) -> None:
        given, net = self.given, self.net
        for event in given.events:
            net.at(event.t, lambda event=event: self.see(event))  # type: ignore[misc]
        for t in given.beats:
            net.at(t, lambda t=t: self.beat(t))  # type: ignore[misc]
        for place, t in given.walk:
            net.at(t, lambda place=place, t=t: self.send(self.walker.name, self.walker.move(place, t)))  # type: ignore[misc]
        for client in self.clients.values():
            net.at(given.end, lambda client=client: self.send(client.name, client.leave(given.end)))  # type: ignore[misc]
        for extra in range(1, 60):
            net.at(given.end + extra, lambda: self.beat(GONE))
        net.run()

    def see(self, event: Event) -> None:
        assert isinstance(event.place, Point)
        client = self.clients[event.source]
        made, sent = client.see(event.type, event.t, event.place, event.attributes)
        assert made == event
        self.send(client.name, sent)
        self.send(client.name, client.move(event.place, event.t))

    def beat(self, t: float) -> None:
        for client in self.clients.values():
            if client.leaf is not None:
                self.send(client.name, client.tell(t))
            elif client is not self.walker:
                self.send(client.name, client.move(Point(0, 0), t))
        for broker in self.brokers.values():
            self.send(broker.name, broker.tick())


def _moved(region: RegionFunction, metres: float) -> RegionFunction:
    return lambda place: region(Point(place.x + metres, place.y))


def worlds() -> list[World]:
    found = []
    for seed in itertools.count(1):
        given = world(seed)
        strict = given.query.policy.is_strict and not isinstance(given.condition, QualityAware)
        if strict and given.points == "basic":
            found.append(given)
        if len(found) == 40:
            return found
    return found


@pytest.mark.parametrize("given", worlds(), ids=lambda given: str(given.seed))
def test_results_are_those_of_an_observer_who_sees_all(given: World) -> None:
    town = Town(given)
    if given.seed % 3 == 0:
        link = (given.sensors[0], next(iter(town.brokers)))
        town.net.at(given.end / 3, lambda: town.net.cut.add(link))
        town.net.at(given.end / 2, lambda: town.net.mend(link))
    town.play()
    check_results(town)


def check_results(town: Town) -> None:
    given = town.given
    markers = town.brokers[town.home].markers(given.query.name)
    assert markers and markers[-1].region is None
    assert {each.t for each in markers[:-1]} <= {t for _, t in given.walk}, "whatever messages take"
    assert markers[-1].t == given.end
    oracle = Oracle(given, markers)
    delivered = [each for _, each in town.walker.results]
    for epoch in range(1, len(markers)):
        found = [each.event for each in delivered if each.epoch == epoch]
        expected = oracle.expected(epoch)
        assert sorted(map(_facts, found)) == sorted(map(_facts, expected))
        assert given.query.policy.order != "spatiotemporal" or [e.t for e in found] == [e.t for e in expected]
    assert [each.epoch for each in delivered] == sorted(each.epoch for each in delivered)
    refused = [each.refused for each in town.brokers.values()] + [
        each.refused for each in town.clients.values()
    ]
    assert not any(refused)


def _facts(event: Event) -> tuple[object, ...]:
    return event.t, event.type, sorted(event.attributes.items()), sorted(event.provenance)


def test_how_long_messages_take_changes_no_result() -> None:
    for given in worlds()[:6]:
        found = []
        for luck in range(3):
            town = Town(given, luck)
            town.play()
            found.append(sorted((d.epoch, d.historical, _facts(d.event)) for _, d in town.walker.results))
        assert found[0] == found[1] == found[2]


def test_who_is_cut_off_stalls_results_and_spoils_none() -> None:
    given = next(each for each in worlds() if len(each.events) > 30)
    town = Town(given)
    for broker in town.brokers:
        town.net.cut.add((given.sensors[0], broker))
    town.play()
    assert town.walker.results == []
    assert set(town.brokers[town.home].waits_for) == {given.sensors[0]}


def test_a_node_is_believed_only_about_itself() -> None:
    given = worlds()[0]
    town = Town(given)
    one, *others = town.brokers
    broker, car = town.brokers[one], given.sensors[0]
    of_another = atomic("x", 1.0, Point(1, 1), 0, given.sensors[1])
    query, home = given.query.name, town.home
    stranger = next(name for name in (*others, car) if name != home)
    lies: list[tuple[str, Said]] = [
        (car, Seen((of_another,))),
        ("stranger", Seen((of_another,))),
        ("stranger", UpTo(9.0)),
        (car, Known(((given.sensors[1], 9.0),))),
        (car, Located(query, Point(1, 1), 1.0)),
        (given.query.focal_object, Located("another", Point(1, 1), 1.0)),
        (stranger, Ordered(query, Hold(1))),
        (car, Answered(query, Held(1, 1.0))),
        (car, Streamed(query, "consumer", ChannelId("s", one), Heartbeat(1.0))),
        (car, Results(query, ())),
    ]
    for number, (sender, said) in enumerate(lies, 1):
        assert broker.receive(sender, said) == []
        assert broker.refused == number
    assert broker.stored == 0 and broker.arrived == -math.inf
    town.walker.receive("stranger", Results(query, ()))
    assert town.walker.refused == 1


def test_an_event_after_its_time_does_not_count() -> None:
    town = Town(worlds()[0])
    broker, car = next(iter(town.brokers.values())), town.given.sensors[0]
    broker.receive(car, UpTo(5.0))
    broker.receive(car, Seen((atomic("x", 4.0, Point(1, 1), 0, car),)))
    assert (broker.stored, broker.refused) == (0, 1)


def test_progress_is_that_of_the_slowest() -> None:
    progress = Progress(["a", "b"])
    assert not progress.hear("a", 3.0) and progress.hear("b", 2.0)
    assert progress.arrived == 2.0 and dict(progress.slowest()) == {"b": 2.0}
    assert not progress.hear("b", 1.0) and not progress.hear("nobody", 9.0)
    assert progress.news() == {"a": 3.0, "b": 2.0} and progress.news() == {}
    assert progress.hear("b", GONE, itself=False) and progress.arrived == 3.0
    assert progress.news() == {}, "who told this told all"


def test_a_client_says_how_far_it_is_only_after_older_brokers_have_all() -> None:
    areas = Areas({"left": Box(0, 0, 10, 10), "right": Box(10, 0, 20, 10)})
    client = Client("car", areas)
    client.see("x", 1.0, Point(5, 5), {})
    assert client.move(Point(5, 5), 1.5) == [("left", UpTo(1.5))]
    client.see("x", 2.0, Point(9, 5), {})
    assert client.move(Point(11, 5), 3.0) == []
    client.acknowledged("left", 0)
    assert client.tell(3.5) == [("right", UpTo(2.0))]
    client.acknowledged("left", 1)
    assert client.tell(4.0) == [("right", UpTo(4.0))]
    assert client.handovers == 1 and client.leave(4.0) == [("right", UpTo(GONE))]


def test_areas_cover_every_place_once() -> None:
    areas = grid([f"b{n}" for n in range(7)], Box(0, 0, 300, 200))
    check_areas(areas, Box(0, 0, 300, 200))
    assert areas.leaf(Point(-50, -50)) == areas.leaf(Point(0, 0)) == "b0"
    with pytest.raises(McepError, match=r"no broker serves the area from \(100, 0\)"):
        check_areas(Areas({"a": Box(0, 0, 100, 100)}), Box(0, 0, 200, 100))
    with pytest.raises(McepError, match="both a and b serve"):
        check_areas(Areas({"a": Box(0, 0, 100, 100), "b": Box(50, 0, 200, 100)}), Box(0, 0, 200, 100))
    with pytest.raises(McepError, match="needs 1 to 1000 brokers"):
        grid(["a", "a"], AREA)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"home": "car0"}, "its home cannot be on car0, which is no broker"),
        ({"hosts": {}}, "has no broker to run on"),
        ({"condition": QualityAware}, "counts events on one broker only"),
    ],
)
def test_bad_deployments(change: dict[str, object], message: str) -> None:
    given = worlds()[0]
    if "condition" in change:
        change = {"condition": QualityAware(Quality(0.5, 0.5), 1.0)}
    hosts = {each.name: "b0" for each in given.query.graph.operators}
    fields = {"query": given.query, "hosts": hosts, "home": "b0", "condition": Always(), **change}
    deployed = Deployed(**fields)  # type: ignore[arg-type]
    areas = grid(["b0", "b1"], AREA)
    with pytest.raises(McepError, match=message):
        check_deployment(Deployment(areas, ("fo", *given.sensors), (deployed,), 9.0))
    with pytest.raises(McepError, match="fo is not a client"):
        check_deployment(Deployment(areas, given.sensors, (deployed,), 9.0))
