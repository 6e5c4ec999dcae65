"""Best effort goes on without clients and brokers that say nothing for a while."""

import math

import pytest

from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Inlet
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.config import deployment_of
from node_agent.apps.mcep.gate import Gate
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.messages import Seen
from node_agent.apps.mcep.model import Event, Mark
from node_agent.apps.mcep.progress import GONE, Progress
from tests.unit.node_agent.apps.mcep.driving import seen
from tests.unit.orchestrator.apps.mcep.town import QUERY, document, planned

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]
A, B = ChannelId("speed", "a"), ChannelId("speed", "b")


def test_a_client_that_says_nothing_is_left_out_after_a_while() -> None:
    progress = Progress(["x", "y", "z"])
    for _ in range(9):
        progress.look(2)
    assert progress.ready == -math.inf, "nobody has begun"
    progress.hear_all([("x", 5.0), ("y", 4.0)])
    for _ in range(2):
        progress.look(2)
        assert progress.ready == -math.inf, "z may still begin"
    progress.hear_all([("x", 6.0), ("y", 7.0)])
    progress.look(2)
    assert (progress.ready, progress.arrived) == (6.0, -math.inf)
    progress.hear("z", 1.0)
    progress.look(2)
    assert (progress.ready, progress.arrived) == (6.0, 1.0), "what was told stays"
    progress.hear_all([("x", GONE), ("y", GONE)])
    for _ in range(5):
        progress.look(2)
    assert progress.ready == 6.0, "the silent one may come back"
    progress.hear("z", GONE)
    progress.look(2)
    assert progress.ready == GONE


def test_who_speaks_of_a_far_time_takes_nobody_out() -> None:
    progress = Progress(["liar", "honest"])
    progress.hear_all([("liar", 1e8), ("honest", 3.0)])
    progress.look(2)
    assert progress.ready == 3.0


def taken(gate: Gate) -> list[str]:
    found = []
    while (each := gate.take()) is not None:
        found.append(each[1].source)
    return found


def speed(name: str, t: float) -> Event:
    return seen(name, "speed", t)._replace(epoch=0)


def test_a_channel_that_brings_nothing_is_given_up_until_it_does() -> None:
    gate = Gate({A: Inlet({"speed"}), B: Inlet({"speed"})}, strict=False)
    gate.receive(A, speed("early", 1.0))
    gate.receive(A, speed("late", 5.0))
    assert taken(gate) == []
    looks = []
    for number in range(4):
        gate.receive(A, Heartbeat(6.0 + number))
        looks.append(gate.look(2))
    assert looks == [False, False, True, False] and taken(gate) == ["early", "late"]
    told: Mark = gate.known_to()
    gate.receive(B, speed("too late", 3.0))
    gate.receive(B, speed("in time", 9.5))
    gate.receive(A, speed("next", 10.0))
    assert taken(gate) == ["in time"] and gate.inlets[B].dropped == 1
    assert gate.known_to() >= told, "nothing that was told is taken back"
    gate.receive(B, Heartbeat(11.0))
    assert taken(gate) == ["next"]


def test_not_all_channels_are_given_up_and_a_strict_gate_waits() -> None:
    for strict, silent in ((False, (A, B)), (True, (B,))):
        gate = Gate({A: Inlet({"speed"}), B: Inlet({"speed"})}, strict=strict)
        gate.receive(A, speed("waits", 1.0))
        for _ in range(9):
            if A not in silent:
                gate.receive(A, Heartbeat(2.0))
            assert not gate.look(2)
        assert taken(gate) == []


@pytest.mark.parametrize("strict", [True, False])
def test_a_dead_client_stalls_strict_queries_only(strict: bool) -> None:
    query = {**QUERY, "suppression": False, "completeness": "weak" if strict else "best_effort"}
    settings = planned(document({"queries": {"near": query}})).recorded.settings
    deployment = deployment_of(settings)
    brokers = {name: Broker(name, deployment, patience=8) for name in deployment.brokers}
    home = deployment.queries[0].home
    homes = {"car1": {"near": home}, "car2": {}}
    clients = {name: Client(name, deployment.areas, followed) for name, followed in homes.items()}
    waiting = []
    for number in range(400):
        t = number / 10
        for name, each in clients.items():
            _, said = each.see("speed", t, Point(100, 100), {"speed": 3.0})
            waiting += [(name, *sent) for sent in said + each.move(Point(100, 100), t)]
        for name, broker in brokers.items():
            waiting += [(name, *sent) for sent in broker.tick()]
        while waiting:
            sender, to, what = waiting.pop(0)
            if to in brokers:
                waiting += [(to, *sent) for sent in brokers[to].receive(sender, what)]
                if isinstance(what, Seen):
                    clients[sender].acknowledged(to, what.events[-1].seq)
                    waiting += [(sender, *sent) for sent in clients[sender].tell(t)]
            elif to in clients:
                waiting += [(to, *sent) for sent in clients[to].receive(sender, what)]
                waiting += [(to, *sent) for sent in clients[to].tell(t)]
    got = [found.event.t for _, found in clients["car1"].results]
    assert got == sorted(got) and (got == [] if strict else got[-1] > 38.0), "car3 and car4 never speak"
    assert (brokers[home].stored > 700) == strict, "best effort alone keeps no more than it needs"
