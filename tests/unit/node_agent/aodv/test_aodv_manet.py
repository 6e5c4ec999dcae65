"""A hostile radio neighbour of an AODV node: where routes may lead, whom it believes, what it remembers."""

import random
from collections import Counter

import pytest

from node_agent.aodv import wire
from node_agent.aodv.actions import Send
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.core import Aodv
from node_agent.aodv.table import MAX_ROUTES
from node_agent.aodv.wire import Broken, Error, Reply, Request
from node_agent.manet.membership import Manet, manet_of

SECOND_NS = 1_000_000_000
BASE = wire.number("10.0.0.0")
OWN, HOSTILE, HONEST = BASE + 1, BASE + 2, BASE + 3
CONTROL = wire.number("172.30.0.9")
PREFIX = manet_of(("10.0.0.0/16",))
MEMBERS = manet_of(("10.0.0.0/16",), tuple(f"10.0.0.{number}" for number in range(1, 6)))


def node(manet: Manet = PREFIX) -> Aodv[bytes]:
    return Aodv[bytes](AodvConfig(), OWN, random.Random(1), 0, 1000, manet)


def refused(core: Aodv[bytes]) -> Counter[str]:
    assert all(each.what == "aodv" for each in core.counters.refusals)
    counted = Counter[str]()
    for each in core.counters.refusals:
        counted[each.reason] += each.count
    return counted


def hear(core: Aodv[bytes], message: wire.Message, now_ns: int = 0, sender: int = HOSTILE) -> list[Send]:
    actions = core.receive(wire.encode(message), sender, 9, now_ns)
    return [action for action in actions if isinstance(action, Send)]


@pytest.mark.parametrize("manet", [PREFIX, MEMBERS])
def test_routes_lead_only_into_the_network(manet: Manet) -> None:
    core = node(manet)
    outside = [CONTROL, wire.number("127.0.0.1"), wire.number("224.0.0.1"), wire.number("10.0.255.255"), 0]
    for address in outside:
        hear(core, Reply(1, address, 5, OWN, 10_000))
        hear(core, Request(1, 1, HONEST, None, address, 5))
        hear(core, Reply(0, address, 5, address, 10_000), sender=address)
    hear(core, Reply(1, HONEST, 5, OWN, 10_000))
    assert {route.destination for route in core.table} == {HOSTILE, HONEST}
    assert refused(core) == {"outside_prefix": 3 * len(outside)}


def test_who_is_no_node_of_the_run_is_not_heard() -> None:
    core = node(MEMBERS)
    hear(core, Reply(1, BASE + 77, 5, OWN, 10_000))
    hear(core, Reply(0, BASE + 77, 5, BASE + 77, 10_000), sender=BASE + 77)
    core.receive(b"rubbish", BASE + 77, 1, 0)
    assert not list(core.table)
    assert refused(core) == {"not_member": 3}


def test_nothing_outside_is_sought() -> None:
    assert node().seek(CONTROL, 0) == []
    assert node().seek(HONEST, 0) != []


def test_invented_destinations_do_not_keep_true_ones_out() -> None:
    core = node()
    hear(core, Reply(1, HONEST, 5, OWN, 60_000))
    assert core.next_hop(HONEST, OWN, None, 0) == HOSTILE  # it carries data
    for number in range(100, 100 + 2 * MAX_ROUTES):
        hear(core, Reply(1, BASE + number, 5, OWN, 60_000))
    hear(core, Reply(1, BASE + 4, 5, OWN, 60_000))
    assert {HOSTILE, HONEST, BASE + 4} <= {route.destination for route in core.valid_routes(0)}
    assert len(list(core.table)) <= MAX_ROUTES
    assert refused(core)["full"] > 0


def test_requests_are_passed_on_at_a_bounded_rate() -> None:
    core, passed_on = node(), 0
    for number in range(5000):
        now_ns = number * SECOND_NS // 1000
        hear(core, Request(number, 1, BASE + 9, None, BASE + 1000 + number, 5), now_ns)
        passed_on += sum(isinstance(each, Send) for each in core.wake(now_ns))
    assert passed_on <= 5 * 200 + 200
    flooding = node()
    for number in range(1000):
        hear(flooding, Request(number, 1, BASE + 9, None, BASE + 8, 5))
    assert sum(isinstance(each, Send) for each in flooding.wake(SECOND_NS)) <= 20
    assert refused(flooding) == {"rate": 980}


def test_numbers_far_ahead_are_refused() -> None:
    """Whoever gets one accepted keeps the true ones, which are behind it, from being believed."""
    core, far = node(), 5 + (1 << 30)
    hear(core, Reply(1, HONEST, 5, OWN, 60_000))
    hear(core, Reply(0, HONEST, far, OWN, 60_000))
    hear(core, Request(1, 0, BASE + 9, None, HONEST, far))
    hear(core, Reply(0, HONEST, far, HONEST, 60_000), sender=HONEST)
    route = core.table.get(HONEST)
    assert route is not None and (route.sequence, route.hops) == (5, 2)
    hear(core, Error((Broken(HONEST, far),)))
    assert not route.valid and route.sequence == 6
    assert refused(core) == {"sequence": 4}
    (answer,) = hear(core, Request(2, 0, OWN, far, HONEST, 7))
    reply = wire.decode(answer.data)
    assert isinstance(reply, Reply) and reply.destination_sequence == 1000
