"""The daemon in small networks: what is said, who relays, and what is believed."""

import random
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.olsr import validity, wire
from node_agent.olsr.announced import MAX_ITEMS
from node_agent.olsr.config import OlsrConfig, Quality
from node_agent.olsr.daemon import Interface, Olsr
from node_agent.olsr.neighbourhood import MAX_LINKS
from node_agent.olsr.paths import MAX_DESTINATIONS
from tests.unit.olsr_network import SECOND, Network, address, edges, line

FAST = OlsrConfig(hello_interval=0.5, hello_validity=3.0, tc_interval=1.0, tc_validity=12.0)
QUALITIES: tuple[Quality, ...] = ("etx_ff", "etx_float", "hops")


def _packets(network: Network) -> list[tuple[int, int, wire.Packet]]:
    return [(when, node, wire.decode_packet(out.data)) for when, node, out in network.sent]


def _grid(side: int) -> list[tuple[int, int]]:
    cells = [(row, column) for row in range(side) for column in range(side)]
    return [
        (row * side + column + 1, r * side + c + 1)
        for row, column in cells
        for r, c in ((row, column + 1), (row + 1, column))
        if r < side and c < side
    ]


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_line_gets_routes_end_to_end(quality: Quality) -> None:
    config = OlsrConfig(hello_interval=1.0, tc_interval=1.0, quality=quality)
    network = Network(range(1, 6), edges(*line(range(1, 6))), config)
    network.run(60)
    assert network.routes(1) == {2: 1, 3: 2, 4: 3, 5: 4}
    route = network.daemons[1].routes(network.now)[address(5)]
    assert route[:3] == (address(2), 0, 4)
    assert route.cost == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        (OlsrConfig(hello_interval=1.0, hello_validity=10.0, tc_interval=1.0, tc_validity=15.0), 12),
        (OlsrConfig(), 25),
    ],
)
def test_a_grid_converges_in_time(config: OlsrConfig, limit: float) -> None:
    network = Network(range(1, 26), edges(*_grid(5)), config)
    assert network.seconds_until(network.complete, limit) <= limit
    network.run(40)
    assert network.routes(1)[25] == 8


def test_a_ring_takes_the_shorter_way_and_the_other_when_it_breaks() -> None:
    broken_after = 1e9

    def loss(a: int, b: int, seconds: float) -> float | None:
        if {a, b} == {1, 2} and seconds >= broken_after:
            return None
        return 0.0 if (a - b) % 6 in (1, 5) else None

    network = Network(range(1, 7), loss, FAST)
    network.run(45)
    assert network.routes(1) == {2: 1, 3: 2, 4: 3, 5: 2, 6: 1}
    broken_after = 45.0
    network.run(FAST.hello_validity + 5 * FAST.tc_interval + 5)
    assert network.routes(1)[2] == 5
    assert network.next_hop(1, 3) == 6


def test_etx_prefers_two_good_hops_to_a_bad_one() -> None:
    network = Network(
        [1, 2, 3],
        lambda a, b, _: 0.5 if {a, b} == {1, 3} else 0.0,
        OlsrConfig(hello_interval=0.5, hello_validity=20.0, tc_interval=1.0),
    )
    network.run(60)
    assert network.next_hop(1, 3) == 2
    hops = Network([1, 2, 3], network.loss, OlsrConfig(hello_interval=0.5, tc_interval=1.0, quality="hops"))
    hops.run(60)
    assert hops.next_hop(1, 3) == 3


def test_a_silent_neighbour_is_gone_within_hello_validity() -> None:
    network = Network([1, 2, 3], edges((1, 2), (2, 3)), FAST)
    network.run(40)
    assert set(network.routes(1)) == {2, 3}
    network.stop(2)
    network.run(FAST.hello_validity + 0.1)
    assert not network.daemons[1].routes(network.now)


def test_partition_and_heal() -> None:
    cut = False
    linked = edges(*line(range(1, 7)))

    def loss(a: int, b: int, seconds: float) -> float | None:
        return None if cut and {a, b} == {3, 4} else linked(a, b, seconds)

    network = Network(range(1, 7), loss, FAST)
    network.run(40)
    assert network.complete()
    cut = True
    network.run(FAST.hello_validity + FAST.tc_validity + 2)
    assert set(network.routes(1)) == {2, 3} and set(network.routes(6)) == {4, 5}
    cut = False
    assert network.seconds_until(network.complete, 30) < 30


def test_hidden_nodes_reach_each_other_through_the_one_between() -> None:
    network = Network([1, 2, 3], edges((1, 2), (2, 3)), FAST)
    network.run(20)
    assert network.next_hop(1, 3) == 2
    (hidden,) = network.daemons[1].view(network.now).neighbours
    assert hidden.is_mpr and [each.address for each in hidden.two_hop] == [address(3)]
    assert network.daemons[2].view(network.now).neighbours[0].is_mpr_selector


def test_a_one_way_link_is_no_link() -> None:
    network = Network([1, 2], lambda a, b, _: 0.0 if a == 1 else None, FAST)
    network.run(40)
    assert not network.routes(1) and not network.routes(2)
    (link,) = network.daemons[2].view(network.now).links
    assert link.status == "ASYMMETRIC" and link.cost is None


@pytest.mark.parametrize("restarts", range(1, 5))
def test_a_restarted_peer_is_believed_again(restarts: int) -> None:
    network = Network(range(1, 6), edges(*line(range(1, 6))), FAST)
    network.run(40)
    network.stop(5)
    network.run(1)
    network.start(5, restarts)
    network.run(40)
    assert network.complete()
    seen = {edge.last_hop: edge.ansn for edge in network.daemons[1].view(network.now).topology}
    assert seen[address(5)] == network.daemons[5].view(network.now).ansn


def test_two_interfaces_are_one_node() -> None:
    network = Network(
        [1, 2, 3, 4],
        lambda a, b, _: 0.0 if abs(a - b) == 1 else None,
        FAST,
        subnets={1: (0,), 2: (0, 1), 3: (1,), 4: (1,)},
    )
    network.run(40)
    far, near = network.daemons[4], network.daemons[1]
    assert far.routes(network.now)[address(2, 1)] == far.routes(network.now)[address(2)]
    assert far.routes(network.now)[address(1)].hops == 3
    assert near.routes(network.now)[address(4, 1)] == (address(2), 0, 3, 3.0)
    assert near.view(network.now).mid[0][:2] == (address(2), (address(2, 1),))
    middle = network.daemons[2].routes(network.now)
    assert middle[address(1)].interface == 0 and middle[address(3, 1)].interface == 1


def test_networks_are_announced_and_the_nearest_gateway_wins() -> None:
    offering = OlsrConfig(
        hello_interval=0.5, hello_validity=3.0, tc_interval=1.0, tc_validity=12.0, hna=("192.168.55.0/24",)
    )
    accepting = msgspec.structs.replace(FAST, accept_networks=("192.168.0.0/16",))
    configs = {1: offering, 5: offering, 3: FAST}
    network = Network(range(1, 6), edges(*line(range(1, 6))), accepting, configs=configs)
    network.run(45)
    assert not network.daemons[3].network_routes(network.now)
    where = (wire.number("192.168.55.0"), wire.number("255.255.255.0"))
    assert network.daemons[2].network_routes(network.now)[where][:3] == (address(1), 0, 1)
    assert network.daemons[4].network_routes(network.now)[where][:3] == (address(5), 0, 1)
    assert {hna.gateway for hna in network.daemons[3].view(network.now).hna} == {address(1), address(5)}


def test_only_relays_forward_and_nobody_twice() -> None:
    leaf = OlsrConfig(hello_interval=0.5, hello_validity=3.0, tc_interval=1.0, willingness=0, mpr_coverage=1)
    hub = OlsrConfig(hello_interval=0.5, hello_validity=3.0, tc_interval=1.0, mpr_coverage=1)
    pairs = [(1, 2), (1, 3), (1, 4), (2, 3), (4, 5)]
    network = Network(range(1, 6), edges(*pairs), leaf, configs={1: hub, 4: hub})
    network.run(40)
    network.record = True
    network.run(20)
    passed: dict[tuple[int, int, int], int] = {}
    for _, node, packet in _packets(network):
        for message in packet.messages:
            if message.originator != address(node):
                key = (node, message.originator, message.seqno)
                passed[key] = passed.get(key, 0) + 1
    assert {node for node, _, _ in passed} == {1, 4}
    assert set(passed.values()) == {1}


def test_packets_end_with_a_hello_and_keep_their_beat() -> None:
    network = Network(range(1, 6), edges(*line(range(1, 6))))
    network.run(60)  # until nobody has news
    network.record = True
    network.run(60)
    beats: dict[int, list[int]] = {}
    for when, node, packet in _packets(network):
        kinds = [message.kind for message in packet.messages]
        assert kinds[-1] == wire.LQ_HELLO and kinds.count(wire.LQ_HELLO) == 1
        beats.setdefault(node, []).append(when)
    for times in beats.values():
        gaps = [(b - a) / SECOND for a, b in pairwise(times)]
        assert min(gaps) >= 1.5 and max(gaps) <= 2.0
    numbers = [packet.seqno for _, node, packet in _packets(network) if node == 1]
    assert all((b - a) & 0xFFFF == 1 for a, b in pairwise(numbers))


@pytest.mark.parametrize("quality", ["etx_ff", "hops"])
def test_that_a_neighbour_is_lost_waits_neither_for_a_tc_nor_for_hellos(quality: Quality) -> None:
    config = OlsrConfig(hello_interval=2.0, hello_validity=6.0, tc_interval=20.0, tc_validity=200.0)
    config = msgspec.structs.replace(config, quality=quality)
    network = Network(range(1, 9), edges(*line(range(1, 9))), config)
    network.run(120)
    assert network.complete()
    network.stop(8)
    hurried = 0.25 * config.hello_interval
    limit = config.hello_validity + 0.25 * config.tc_interval + 7 * hurried
    network.seconds_until(lambda: address(8) not in network.daemons[1].routes(network.now), limit)


def test_tcs_do_not_wait_for_rare_hellos() -> None:
    config = OlsrConfig(hello_interval=4.0, hello_validity=20.0, tc_interval=0.5, tc_validity=5.0)
    network = Network(range(1, 4), edges((1, 2), (2, 3)), config)
    network.run(60)
    network.record = True
    network.run(20)
    said = [p for _, node, p in _packets(network) if node == 2 and p.messages[-1].kind == wire.LQ_TC]
    assert len(said) > 10


def test_fisheye_ttls_and_their_absence() -> None:
    for fisheye, ttls in ((True, {255, 2, 8, 16}), (False, {255})):
        config = OlsrConfig(hello_interval=0.5, tc_interval=0.5, tc_validity=5.0, fisheye=fisheye)
        network = Network([1, 2], edges((1, 2)), config)
        network.record = True
        network.run(60)
        own = [
            message.ttl
            for _, node, packet in _packets(network)
            for message in packet.messages
            if message.kind == wire.LQ_TC and node == 1 and message.originator == address(1)
        ]
        assert own[:32] == [255] * 32 and set(own) == ttls
        if fisheye:
            assert own[32:40] == [2, 8, 2, 16, 2, 8, 2, 255]


def test_a_lonely_node_sends_no_tc_but_a_left_one_says_that_it_is_empty() -> None:
    config = OlsrConfig(hello_interval=0.5, hello_validity=2.0, tc_interval=1.0, tc_validity=5.0)
    network = Network([1, 2], edges((1, 2)), config)
    network.run(20)
    network.stop(2)
    network.run(3)
    network.record = True
    network.run(10)
    empty = [m for _, _, p in _packets(network) for m in p.messages if m.kind == wire.LQ_TC]
    assert empty and all(wire.decode_tc(message).neighbours == () for message in empty)
    network.run(15)
    network.sent.clear()
    network.run(10)
    alone = Network([1], edges(), config)
    alone.record = True
    alone.run(20)
    for quiet in (network, alone):
        assert quiet.sent
        assert all(m.kind == wire.LQ_HELLO for _, _, p in _packets(quiet) for m in p.messages)


def test_the_same_seed_says_the_same() -> None:
    def said(seed: int) -> list[tuple[int, int, bytes]]:
        network = Network(range(1, 10), edges(*_grid(3), loss=0.2), seed=seed)
        network.record = True
        network.run(40)
        return [(when, node, out.data) for when, node, out in network.sent]

    assert said(1) == said(1)
    assert said(1) != said(2)


def test_counters_add_up() -> None:
    network = Network([1, 2, 3], edges((1, 2), (2, 3)), FAST)
    network.record = True
    network.run(30)
    counted = network.daemons[2].counters.as_dict()
    mine = [out.data for _, node, out in network.sent if node == 2]
    total = sum(kind["sent_bytes"] + kind["forwarded_bytes"] for kind in counted.values())
    assert total == sum(len(data) + 28 for data in mine)
    assert counted["packet"]["sent"] == len(mine)
    assert counted["LQ_TC"]["forwarded"] > 0 and counted["LQ_HELLO"]["forwarded"] == 0
    heard = [out.data for when, node, out in network.sent if node != 2 and when < network.now - 2_000_000]
    assert counted["packet"]["received"] == len(heard)


def _with_neighbour(accepted: tuple[str, ...] = ()) -> Olsr:
    """A daemon (10.0.0.1) with a perfect symmetric neighbour (10.0.0.2) that has chosen it to relay."""
    daemon = Olsr(OlsrConfig(accept_networks=accepted), [Interface("wlan0", address(1))], random.Random(1), 0)
    listed = wire.Group(2 | 2 << 2, (wire.Neighbour(address(1), bytes((255, 255, 0, 0))),))
    body = wire.encode_hello(wire.Hello(validity.encode(2.0), 3, (listed,)), wire.LQ_HELLO)
    hello = wire.Message(wire.LQ_HELLO, validity.encode(20.0), address(2), 1, 0, 1, body)
    daemon.receive(wire.encode_packet(1, [hello]), 0, address(2), 0)
    return daemon


@settings(max_examples=300)
@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_rubbish_is_counted_and_never_raises(data: bytes, sender: int) -> None:
    daemon = _with_neighbour()
    daemon.receive(data, 0, sender, SECOND)
    body = wire.Message(random.Random(len(data)).choice((1, 2, 3, 4, 201, 202)), 5, 9, 255, 0, 1, data)
    daemon.receive(wire.encode_packet(1, [body]), 0, address(2), SECOND)
    daemon.wake(2 * SECOND)
    daemon.routes(2 * SECOND)
    daemon.view(2 * SECOND)


def test_a_hostile_sender_cannot_fill_the_memory() -> None:
    daemon = _with_neighbour()
    rng = random.Random(1)
    for number in range(4000):
        messages = []
        for kind in (wire.LQ_TC, wire.MID, wire.HNA, 77):
            body = rng.randbytes(400)
            if kind == wire.LQ_TC:
                body = body[:2] + b"\xff\xff" + body[4:396]
            if kind == wire.HNA:
                body = b"".join(rng.randbytes(4) + b"\xff\xff\xff\x00" for _ in range(30))
            messages.append(wire.Message(kind, 0xFF, rng.getrandbits(32), 255, 0, rng.getrandbits(16), body))
        daemon.receive(wire.encode_packet(number, messages), 0, address(2), number)
        stranger = wire.Message(wire.LQ_HELLO, 0xFF, rng.getrandbits(32), 1, 0, 1, bytes((0, 0, 5, 3)))
        daemon.receive(wire.encode_packet(1, [stranger]), 0, rng.getrandbits(32), number)
    view = daemon.view(5000)
    assert len(view.links) <= MAX_LINKS
    assert len(view.topology) <= 65536 + 1
    assert daemon.counters.refusals.total and daemon.counters.dropped
    out = daemon.wake(6000)
    assert sum(len(each.data) for each in out) < 200_000


def _flood(daemon: Olsr, kind: int, body: bytes, seqno: int, originator: int = address(2)) -> None:
    message = wire.Message(kind, validity.encode(300.0), originator, 255, 0, seqno, body)
    daemon.receive(wire.encode_packet(seqno, [message]), 0, address(2), seqno)


def _usable(daemon: Olsr) -> int:
    """The time at which the link to its neighbour counts as good."""
    for second in range(1, 40):
        listed = wire.Group(2 | 2 << 2, (wire.Neighbour(address(1), bytes((255, 255, 0, 0))),))
        body = wire.encode_hello(wire.Hello(validity.encode(2.0), 3, (listed,)), wire.LQ_HELLO)
        hello = wire.Message(wire.LQ_HELLO, validity.encode(20.0), address(2), 1, 0, second, body)
        daemon.receive(wire.encode_packet(second + 1, [hello]), 0, address(2), second * SECOND)
        daemon.wake(second * SECOND)
    return 39 * SECOND


def _tc(*neighbours: int) -> bytes:
    perfect = bytes((255, 255, 0, 0))
    listed = tuple(wire.Neighbour(each, perfect) for each in neighbours)
    return wire.encode_tc(wire.Tc(1, 255, 255, listed), wire.LQ_TC)


def test_nobody_leads_us_to_ourselves_or_to_what_is_no_node() -> None:
    interfaces = [Interface("wlan0", address(1)), Interface("wlan1", address(1, 1))]
    daemon = Olsr(OlsrConfig(), interfaces, random.Random(1), 0)
    now = _usable(daemon)
    impossible = [wire.number(text) for text in ("0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255")]
    _flood(daemon, wire.LQ_TC, _tc(address(3), address(1), address(1, 1), *impossible), 100)
    _flood(daemon, wire.MID, wire.encode_mid(wire.Mid((address(1, 1), *impossible))), 101)
    _flood(daemon, wire.LQ_TC, _tc(address(4)), 102, originator=address(1, 1))
    for sender in (address(1, 1), *impossible):
        hello = wire.Message(wire.LQ_HELLO, 0xFF, sender, 1, 0, 1, bytes((0, 0, 5, 3)))
        daemon.receive(wire.encode_packet(1, [hello]), 0, sender, now)
    assert daemon.routes(now).keys() == {address(2), address(3)}
    assert len(daemon.view(now).links) == 1


def test_a_network_is_announced_however_its_host_bits_are_set() -> None:
    daemon = _with_neighbour(("192.168.7.0/24",))
    now = _usable(daemon)
    mask = 0xFFFF_FF00
    _flood(daemon, wire.HNA, wire.encode_hna(wire.Hna(((wire.number("192.168.7.5"), mask),))), 100)
    assert daemon.network_routes(now).keys() == {(wire.number("192.168.7.0"), mask)}


def test_a_hostile_sender_cannot_flood_the_kernel_with_routes() -> None:
    daemon = _with_neighbour(("11.0.0.0/8",))
    now = _usable(daemon)
    for number in range(16):
        listed = range(address(3) + 500 * number, address(3) + 500 * (number + 1))
        _flood(daemon, wire.LQ_TC, _tc(*listed), 100 + number, address(2 + number))
    for number in range(200):
        networks = tuple((0x0B00_0000 + number * 256 + each, 0xFFFF_FFFF) for each in range(256))
        _flood(daemon, wire.HNA, wire.encode_hna(wire.Hna(networks)), 200 + number, address(3) + number)
    assert 1000 < len(daemon.routes(now)) <= MAX_DESTINATIONS
    assert 1000 < len(daemon.network_routes(now)) <= MAX_ITEMS


def test_an_echo_of_ones_own_words_changes_nothing() -> None:
    network = Network([1, 2], edges((1, 2)), FAST)
    network.record = True
    network.run(20)
    daemon = network.daemons[1]
    before = daemon.view(network.now)
    for _, node, out in network.sent:
        if node == 1:
            daemon.receive(out.data, 0, address(1), network.now)
            daemon.receive(out.data, 0, address(77), network.now)
    assert daemon.view(network.now) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"hello_interval": 0.0},
        {"hello_interval": 30.0},
        {"willingness": 8},
        {"tc_redundancy": 3},
        {"mpr_coverage": 0},
        {"jitter": 0.9},
        {"hna": ("192.168.55.1/24",)},
    ],
)
def test_a_daemon_is_not_told_nonsense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        OlsrConfig(**wrong)  # type: ignore[arg-type]
