"""A daemon that ends in order says goodbye: what it sends, and how fast others forget it."""

import pytest

from node_agent.olsr import hello, wire
from node_agent.olsr.config import OlsrConfig, Quality
from tests.unit.olsr_network import Network, address, edges, line

NODES = range(1, 6)
TIMERS = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, tc_validity=15.0)
SETTLED_S = 60.0


def settled(config: OlsrConfig = TIMERS, lost: float = 0.0) -> Network:
    network = Network(NODES, edges(*line(NODES), loss=lost), config)
    network.run(SETTLED_S)
    assert network.complete()
    return network


def forgotten_after(network: Network, node: int, limit: float) -> float:
    """Seconds until nobody has a route to the node, which is gone."""
    network.stop(node)
    gone = address(node)
    others = network.daemons.values()
    return network.seconds_until(
        lambda: all(gone not in daemon.routes(network.now) for daemon in others), limit, step=0.05
    )


@pytest.mark.parametrize("quality", ["etx_ff", "etx_float", "fast", "hops"])
@pytest.mark.parametrize("node", [3, 5])
def test_others_forget_it_at_once_wherever_it_stood(quality: Quality, node: int) -> None:
    config = OlsrConfig(
        hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, tc_validity=15.0, quality=quality
    )
    network = settled(config)
    network.leave(node)
    assert forgotten_after(network, node, limit=1.0) <= 1.0


def test_one_that_dies_is_missed_after_the_validity_of_its_hellos_only() -> None:
    assert forgotten_after(settled(), 5, limit=6.0) > 2.0


def test_with_olsrds_own_timers_it_takes_less_than_one_tc() -> None:
    network = settled(OlsrConfig())
    network.leave(5)
    assert forgotten_after(network, 5, limit=5.0) <= 2.0


def test_a_goodbye_may_be_repeated_for_those_who_missed_it() -> None:
    network = settled()
    hears, network.loss = network.loss, lambda *_: None
    network.leave(5)
    network.loss = hears
    network.leave(5)
    assert forgotten_after(network, 5, limit=1.0) <= 1.0


@pytest.mark.parametrize("measured", [True, False])
def test_its_last_words_name_all_links_as_lost_and_no_edges(measured: bool) -> None:
    network = settled(TIMERS if measured else OlsrConfig(hello_interval=1.0, quality="hops"))
    daemon = network.daemons[3]
    before = [out.data for out in daemon.farewell(network.now)]
    for data in before, [out.data for out in daemon.farewell(network.now)]:
        (packet,) = map(wire.decode_packet, data)
        *_, tc, greeting = packet.messages
        assert (tc.kind, tc.ttl) == (wire.LQ_TC if measured else wire.TC, 255)
        assert wire.decode_tc(tc).neighbours == ()
        assert (greeting.kind, greeting.ttl) == (wire.LQ_HELLO if measured else wire.HELLO, 1)
        (group,) = wire.decode_hello(greeting).groups
        assert group.code == hello.LOST | hello.NOT_NEIGHBOUR << 2
        assert {each.address for each in group.neighbours} == {address(2), address(4)}
    assert daemon.routes(network.now) == {}


def test_every_interface_says_goodbye() -> None:
    network = Network((1, 2, 3), edges((1, 2), (2, 3)), TIMERS, subnets={1: (0,), 2: (0, 1), 3: (1,)})
    network.run(SETTLED_S)
    assert network.complete()
    network.leave(2)
    assert forgotten_after(network, 2, limit=1.0) <= 1.0
    assert all(daemon.routes(network.now) == {} for daemon in network.daemons.values())


def test_one_that_nobody_knows_has_little_to_say() -> None:
    network = Network((1,), edges(), TIMERS)
    network.run(10)
    (packet,) = (wire.decode_packet(out.data) for out in network.daemons[1].farewell(network.now))
    (greeting,) = packet.messages
    assert wire.decode_hello(greeting).groups == ()


def test_who_comes_back_is_believed_again() -> None:
    network = settled()
    network.leave(5)
    network.stop(5)
    network.run(2)
    network.start(5, restarts=1)
    assert network.seconds_until(network.complete, limit=15) <= 15
