"""Pipes between nodes in virtual time: rate, latency, queues, and what is lost when a link goes down."""

from dataclasses import dataclass, field

import pytest

from node_agent.ports.virtual.loop import VirtualLoop
from orchestrator.contacts.plan import Contact, ContactLink
from orchestrator.errors import BadInput
from orchestrator.radio.airtime import ETHERNET_HEADER
from orchestrator.radio.changes import AirChanges, Weakened
from orchestrator.radio.contact_medium import ContactMedium
from orchestrator.radio.medium import BROADCAST, Frame
from orchestrator.radio.pipes import named_links, pipe_table

NODES = ("a", "b", "c")
SIZE = 1000 - ETHERNET_HEADER
MS = 1_000_000
FAST, SLOW = 8_000_000, 800_000
"""A frame takes 1 ms and 10 ms."""


def link(a: str, b: str, rate: float = FAST, latency: float = 0.0, one_way: bool = False) -> ContactLink:
    return ContactLink(a, b, (Contact(0.0, 9.0),), 1.0, 1.0, rate, latency, one_way=one_way)


@dataclass
class World:
    queue: int = 50
    received: list[tuple[str, str, object, float]] = field(default_factory=list)
    failed: list[tuple[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = VirtualLoop()
        self.medium = ContactMedium(self.loop, NODES, self.queue)
        for node in NODES:
            self.medium.attach(node, lambda frame, node=node: self._got(node, frame), self._lost)  # type: ignore[misc]

    def up(self, *links: ContactLink) -> None:
        self.medium.use(pipe_table(links, NODES))

    def send(self, source: str, destination: str, *payloads: object) -> None:
        for payload in payloads:
            self.medium.send(Frame(source, destination, SIZE, payload))

    def run(self, until_ms: float) -> None:
        self.loop.run_until_ns(round(until_ms * MS))

    def _got(self, node: str, frame: Frame) -> None:
        self.received.append((frame.source, node, frame.payload, self.loop.now_ns() / MS))

    def _lost(self, frame: Frame) -> None:
        self.failed.append((frame.source, frame.payload))


@pytest.fixture
def world() -> World:
    return World()


def test_frames_follow_each_other_at_the_links_rate_and_arrive_after_its_latency(world: World) -> None:
    world.up(link("a", "b", latency=0.005))
    world.send("a", "b", 1, 2, 3)
    world.send("b", "a", 4)  # the other direction is free
    world.run(20)
    assert world.received == [("a", "b", 1, 6.0), ("b", "a", 4, 6.0), ("a", "b", 2, 7.0), ("a", "b", 3, 8.0)]


def test_a_slow_link_holds_up_nobody_on_another(world: World) -> None:
    world.up(link("a", "b", SLOW), link("a", "c"))
    world.send("a", "b", 1, 2)
    world.send("a", "c", 3)
    world.run(30)
    assert world.received == [("a", "c", 3, 1.0), ("a", "b", 1, 10.0), ("a", "b", 2, 20.0)]


def test_a_broadcast_goes_over_every_link_that_is_up(world: World) -> None:
    world.up(link("a", "b"), link("a", "c", SLOW), link("b", "c"))
    world.send("a", BROADCAST, 1)
    world.run(30)
    assert world.received == [("a", "b", 1, 1.0), ("a", "c", 1, 10.0)]


def test_without_a_link_a_frame_fails_at_once(world: World) -> None:
    world.up(link("a", "b", one_way=True))
    world.send("a", "c", 1)
    world.send("b", "a", 2)
    assert world.failed == []  # not before ``send`` has returned
    world.run(1)
    assert world.failed == [("a", 1), ("b", 2)] and world.received == []


def test_a_link_that_goes_down_takes_what_is_not_sent_whole(world: World) -> None:
    world.up(link("a", "b", latency=0.005))
    world.send("a", "b", 1, 2, 3)
    world.run(1.5)  # the first is on its way, the second is being sent
    world.up()
    world.up(link("a", "b", latency=0.005))
    world.send("a", "b", 4)
    world.run(30)
    assert [each[2:] for each in world.received] == [(1, 6.0), (4, 7.5)]
    assert world.failed == [("a", 2), ("a", 3)]
    counts = world.medium.stations[0]
    assert (counts.link_attempts[1], counts.link_received[1], counts.given_up) == (3, 2, 2)


def test_a_full_queue_drops() -> None:
    world = World(queue=2)
    world.up(link("a", "b"))
    world.send("a", "b", 1, 2, 3, 4, 5)
    world.run(30)
    assert [each[2] for each in world.received] == [1, 2, 3]
    assert world.medium.stations[0].queue_drops == 2


def test_a_link_that_stays_up_keeps_its_frames_while_others_change(world: World) -> None:
    world.up(link("a", "b", SLOW))
    world.send("a", "b", 1, 2)
    world.run(5)
    world.up(link("a", "b", SLOW), link("b", "c"))
    world.run(30)
    assert [each[2:] for each in world.received] == [(1, 10.0), (2, 20.0)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (AirChanges(), {"a": {"b": 1.0}, "b": {"a": 1.0, "c": 1.0}, "c": {"b": 1.0}}),
        (AirChanges(silent=("c",)), {"a": {"b": 1.0}, "b": {"a": 1.0}, "c": {}}),
        (AirChanges(links=(Weakened("b", "a"),)), {"a": {}, "b": {"c": 1.0}, "c": {"b": 1.0}}),
        (AirChanges(splits=((("a", "b"),),)), {"a": {"b": 1.0}, "b": {"a": 1.0}, "c": {}}),
    ],
)
def test_faults_cut_links(changes: AirChanges, expected: dict[str, dict[str, float]]) -> None:
    assert named_links(pipe_table([link("a", "b"), link("b", "c")], NODES, changes), NODES) == expected


def test_frames_that_make_no_sense_are_refused(world: World) -> None:
    for source, destination in (("a", "a"), ("a", "x"), ("x", "a")):
        with pytest.raises(BadInput):
            world.send(source, destination, 1)
