"""Cables beside a radio, in virtual time and in the loop of namespaces: who gets what, when, and once."""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from node_agent.ports.virtual.loop import VirtualLoop
from orchestrator.backends.netns.radio.config import RadioConfig
from orchestrator.backends.netns.radio.models import air_model
from orchestrator.backends.sim.air import Air, make_air
from orchestrator.model.trace import Waypoint
from orchestrator.radio.airtime import ETHERNET_HEADER
from orchestrator.radio.changes import UNCHANGED, AirChanges, Weakened
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.medium import BROADCAST, Frame
from orchestrator.radio.station import EVERYONE, Outgoing
from orchestrator.spec.topology import Topology

PLACES = {"b1": (0.0, 0.0), "b2": (50.0, 0.0), "b3": (2000.0, 0.0), "car": (20.0, 0.0)}
NODES = tuple(PLACES)
SIZE = 1000 - ETHERNET_HEADER
MS = 1_000_000
RADIOS = {
    "disc": {"model": "disc", "range": "100 m", "bandwidth": "11 Mb/s", "latency": "0 ms"},
    "80211b": {"model": "80211b", "tx_power": "-20 dBm"},
}


def topology(radio: str = "80211b") -> Topology:
    return Topology.model_validate(
        {
            "name": "town",
            "nodes": list(NODES),
            "area": "2000 m x 100 m",
            "mobility": {"model": "static", "positions": {node: list(at) for node, at in PLACES.items()}},
            "radio": RADIOS[radio],
            # A frame takes 10 ms, and 5 ms more to get there.
            "wires": [{"between": ["b1", "b2", "b3"], "rate": "800 kb/s", "latency": "5 ms"}],
        }
    )


@dataclass
class World:
    radio: str
    received: list[tuple[str, str, float]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = VirtualLoop()
        self.air: Air = make_air(topology(self.radio), self.loop, PLACES, seed=1)
        self.air.move(PLACES, 0.0)
        for node in NODES:
            self.air.medium.attach(node, lambda frame, node=node: self._got(node, frame), self._lost)  # type: ignore[misc]

    def send(self, source: str, destination: str) -> None:
        self.air.medium.send(Frame(source, destination, SIZE, None))

    def _got(self, node: str, frame: Frame) -> None:
        self.received.append((frame.source, node, self.loop.now_ns() / MS))

    def _lost(self, frame: Frame) -> None:
        self.failed.append(f"{frame.source} {frame.destination}")


@pytest.fixture(params=["disc", "80211b"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_the_cable_carries_what_is_between_its_ends_and_the_radio_the_rest(world: World) -> None:
    world.send("b1", "b2")
    world.send("b1", "b3")
    world.send("b1", "car")
    world.send("car", "b3")  # out of its range
    world.loop.run_until_ns(100 * MS)
    by_radio, *by_wire = world.received
    assert by_radio[:2] == ("b1", "car") and by_radio[2] < 10
    assert by_wire == [("b1", "b2", 15.0), ("b1", "b3", 15.0)]
    assert world.failed == ["car b3"]
    used = {(use.source, use.destination): (use.attempted, use.delivered) for use in world.air.uses()}
    assert used["b1", "b2"] == used["b1", "b3"] == (1, 1)


def test_a_broadcast_reaches_everybody_once(world: World) -> None:
    world.send("b1", BROADCAST)
    world.loop.run_until_ns(50 * MS)
    world.send("car", BROADCAST)
    world.loop.run_until_ns(100 * MS)
    assert sorted(each[:2] for each in world.received) == [
        *(("b1", "b2"), ("b1", "b3"), ("b1", "car")),
        *(("car", "b1"), ("car", "b2")),
    ]


def test_links_are_those_of_both_and_a_cut_cable_is_not_replaced_by_radio(world: World) -> None:
    links = world.air.move(PLACES, 0.1)
    assert set(links["b1"]) == {"b2", "b3", "car"} and set(links["car"]) == {"b1", "b2"}
    assert links["b1"]["b2"] == links["b1"]["b3"] == 1.0
    assert world.air.move(PLACES, 0.2) == links
    cut = world.air.move(PLACES, 0.3, AirChanges(links=(Weakened("b1", "b2"),)))
    assert set(cut["b1"]) == {"b3", "car"}
    world.send("b1", "b2")
    world.loop.run_until_ns(100 * MS)
    assert world.failed == ["b1 b2"] and not world.received


def test_a_node_knows_its_cables_as_links_without_a_signal() -> None:
    world = World("80211b")
    world.send("b1", "b2")
    world.send("car", "b2")
    world.loop.run_until_ns(100 * MS)
    radio = world.air.radio_of("b2")
    assert radio is not None
    found = radio.read()
    assert set(found) == {"b1", "car"}
    assert found["b1"].signal_dbm is None and found["car"].signal_dbm is not None


@dataclass
class Loop:
    """The medium that carries frames between namespaces, with queues in place of their rings."""

    rings: list[deque[Outgoing]] = field(default_factory=lambda: [deque() for _ in NODES])
    received: list[tuple[int, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = air_settings(topology())
        addresses = {node: f"02:00:00:00:00:0{number}" for number, node in enumerate(NODES)}
        trace: dict[str, tuple[Waypoint, ...]] = {node: (Waypoint(0.0, *at),) for node, at in PLACES.items()}
        wires = topology().wire_links()
        config = RadioConfig("run", ".", addresses, trace, *settings, wires=wires)
        config.check()
        self.model = air_model(config)
        self.seen = self.model.look(PLACES, 0.0, UNCHANGED)
        self.medium = self.model.medium(self.seen, random.Random(1), self._pull, self._deliver)

    def offer(self, node: int, *destinations: int) -> None:
        self.rings[node].extend(Outgoing(each, SIZE + ETHERNET_HEADER, b"") for each in destinations)
        self.medium.offer(node, self.medium.now_ns)

    def _pull(self, node: int) -> Outgoing | None:
        return self.rings[node].popleft() if self.rings[node] else None

    def _deliver(self, receiver: int, sender: int, frame: Outgoing) -> None:
        self.received.append((sender, receiver, self.medium.now_ns / MS))


def test_in_the_loop_the_cable_does_not_wait_for_the_radio() -> None:
    loop = Loop()
    loop.offer(0, *[3] * 30, 1, 2)
    loop.medium.run_until(200 * MS)
    by_wire = [each for each in loop.received if each[1] in (1, 2)]
    assert by_wire == [(0, 1, 15.0), (0, 2, 15.0)]
    assert sum(receiver == 3 for _, receiver, _ in loop.received) == 30
    times = [at for _, _, at in loop.received]
    assert times == sorted(times)
    here = loop.medium.stations[0]
    assert here.link_attempts[1:3] == [1, 1] and here.link_received[3] == 30


def test_in_the_loop_a_broadcast_reaches_everybody_once() -> None:
    loop = Loop()
    loop.offer(0, EVERYONE)
    loop.medium.run_until(200 * MS)
    assert sorted(each[:2] for each in loop.received) == [(0, 1), (0, 2), (0, 3)]


def test_in_the_loop_a_cut_cable_loses_what_is_on_it_and_is_up_again_later() -> None:
    loop = Loop()
    cut = loop.model.look(PLACES, 0.1, AirChanges(silent=("b3",)))
    assert "b3" not in cut.links["b1"] and cut.expectation(0, 1) == (1.0, None)
    loop.offer(0, 2)
    loop.medium.apply(cut.packed(), 0)
    loop.medium.run_until(100 * MS)
    assert not loop.received
    loop.medium.apply(loop.model.look(PLACES, 0.2).packed(), loop.medium.now_ns)
    loop.offer(0, 2)
    loop.medium.run_until(200 * MS)
    assert loop.received == [(0, 2, 115.0)]
    powers = loop.model.power_mw(loop.seen)
    assert powers[0][1] == 0.0 and powers[0][3] > 0.0
