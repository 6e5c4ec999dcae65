"""AODV on small networks: routes are found when needed, loop-free, and given up in bounded time."""

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.aodv import wire
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.limits import SEEN_LIMIT, RateLimit, SeenRequests
from node_agent.aodv.search import Ring, first_ring, next_ring, reply_timeout
from node_agent.aodv.table import MAX_ROUTES, RouteTable, newer, newest
from node_agent.aodv.wire import Reply, Request
from node_agent.model.refusals import Refusal
from tests.unit.aodv_network import SECOND_NS, AodvNetwork, line, ring

HELLO = AodvConfig(detection="hello")


def kinds_sent(network: AodvNetwork) -> Counter[str]:
    return Counter(wire.kind_of(wire.decode(data)) for _, _, _, data in network.log)


@pytest.mark.parametrize("detection", ["feedback", "hello"])
def test_a_packet_waits_for_its_route_and_arrives(detection: str) -> None:
    network = AodvNetwork(5, line(5), config_for(detection))
    packets = [network.send(1, 5) for _ in range(3)]
    assert network.cores[1].held == 3
    network.run(2)
    assert network.delivered == packets
    assert network.route(1, 5) == [1, 2, 3, 4, 5]
    assert network.route(5, 1) == [5, 4, 3, 2, 1]
    assert network.cores[1].held == 0


def test_the_search_widens_ring_by_ring() -> None:
    network = AodvNetwork(5, line(5))
    network.send(1, 5)
    network.run(2)
    asked = [data for _, node, _, data in network.log if node == 1 and data[0] == wire.RREQ]
    assert len(asked) == 3  # one hop, three, five: found
    # The first ring ended with the neighbour.
    by_others = [when for when, node, _, data in network.log if node != 1 and data[0] == wire.RREQ]
    assert min(by_others) > AodvConfig().ring_traversal_time(1) * SECOND_NS


def test_rings_and_patience_follow_the_rfc() -> None:
    config = AodvConfig()
    rings = [first_ring(config, None)]
    while (wider := next_ring(config, rings[-1])) is not None:
        rings.append(wider)
    assert rings == [Ring(1), Ring(3), Ring(5), Ring(7), Ring(35), Ring(35, 1), Ring(35, 2)]
    assert [round(reply_timeout(config, each), 2) for each in rings] == [
        0.24,
        0.4,
        0.56,
        0.72,
        2.8,
        5.6,
        11.2,
    ]
    assert first_ring(config, 3) == Ring(5)
    assert first_ring(config, 6) == Ring(35)


def test_the_shorter_way_round_a_ring_is_taken() -> None:
    network = AodvNetwork(6, ring(6))
    network.send(1, 3)
    network.run(2)
    assert network.route(1, 3) == [1, 2, 3]


def test_who_knows_a_way_answers_for_the_destination() -> None:
    network = AodvNetwork(5, line(5))
    network.send(2, 5)
    network.run(1)
    network.log.clear()
    network.send(1, 5)
    network.run(1)
    answered = [node for _, node, _, data in network.log if data[0] == wire.RREP and data[3] > 0]
    assert 2 in answered
    assert not any(node == 5 for _, node, _, _ in network.log)
    # The destination was told how to answer, without having asked.
    assert network.route(5, 1) == [5, 4, 3, 2, 1]


def test_only_the_destination_answers_if_told_so() -> None:
    network = AodvNetwork(5, line(5), AodvConfig(destination_only=True))
    network.send(2, 5)
    network.run(1)
    network.log.clear()
    packet = network.send(1, 5)
    network.run(2)
    first = next(node for _, node, _, data in network.log if data[0] == wire.RREP)
    assert first == 5
    assert packet in network.delivered


@pytest.mark.parametrize("detection", ["feedback", "hello"])
def test_a_broken_link_is_reported_and_routed_around(detection: str) -> None:
    network = AodvNetwork(6, ring(6), config_for(detection))
    for _ in range(10):
        network.send(1, 3)
        network.run(0.3)
    assert network.route(1, 3) == [1, 2, 3]
    network.links.remove(frozenset((2, 3)))
    for _ in range(20):
        network.send(1, 3)
        network.run(0.3)
    assert network.route(1, 3) == [1, 6, 5, 4, 3]
    assert kinds_sent(network)["RERR"] >= 1
    assert len(network.delivered) >= (29 if detection == "feedback" else 20)
    assert network.delivered[-1].number == 30


def test_a_partition_costs_a_bounded_number_of_requests() -> None:
    network = AodvNetwork(4, line(3))
    lost = [network.send(1, 4) for _ in range(5)]
    network.run(40)
    asked = [data for _, node, _, data in network.log if node == 1 and data[0] == wire.RREQ]
    assert len(asked) == 7
    assert network.drops == [(1, packet, "no_route") for packet in lost]
    assert network.cores[1].counters.drops["no_route"] == 5
    network.links.add(frozenset((3, 4)))
    found = network.send(1, 4)
    network.run(3)
    assert network.delivered == [found]


def test_waiting_packets_are_bounded_in_number_and_age() -> None:
    network = AodvNetwork(2, [], AodvConfig(held_packets=3, held_seconds=1))
    packets = [network.send(1, 2) for _ in range(5)]
    assert network.drops == [(1, packet, "buffer_full") for packet in packets[:2]]
    network.run(1.5)
    assert network.drops[2:] == [(1, packet, "too_old") for packet in packets[2:]]


def test_requests_and_errors_are_limited_in_rate() -> None:
    network = AodvNetwork(1, [])
    for destination in range(2, 200):
        network.cores[1].seek(destination, 0)
    network.run(10)
    times = [when for when, _, _, data in network.log if data[0] == wire.RREQ]
    assert all(later - earlier >= SECOND_NS for earlier, later in zip(times, times[10:], strict=False))
    core = network.cores[1]
    for destination in range(50):
        core.unroutable(destination, 77, network.now_ns)
    assert core.counters.kinds["RERR"].sent == 10
    assert core.counters.suppressed == 40
    assert core.counters.drops["unroutable"] == 50


def test_unused_routes_end_and_silence_follows() -> None:
    network = AodvNetwork(4, line(4), HELLO)
    network.send(1, 4)
    network.run(30)
    assert network.route(1, 4) == [1]
    assert not [when for when, _, _, _ in network.log if when > 15 * SECOND_NS]
    network.run(30)
    assert [len(list(core.table)) for core in network.cores.values()] == [0, 0, 0, 0]


def test_a_route_in_use_stays_without_another_search() -> None:
    for config in (AodvConfig(), HELLO):
        network = AodvNetwork(4, line(4), config)
        for _ in range(60):
            network.send(1, 4)
            network.run(0.5)
        assert len(network.delivered) == 60
        assert not [when for when, _, _, data in network.log if data[0] == wire.RREQ and when > 2 * SECOND_NS]


def test_a_link_in_one_direction_is_avoided() -> None:
    # 2 hears 1 not: replies to 1 over the short way are lost until 1's neighbour is blacklisted.
    for config in (AodvConfig(), HELLO):
        network = AodvNetwork(4, [(1, 2), (2, 4), (1, 3), (3, 4)], config)
        network.one_way = {(1, 2)}
        packet = network.send(1, 4)
        network.run(15)
        assert packet in network.delivered
        assert network.drops == []


def test_garbage_is_counted_and_changes_nothing() -> None:
    core = AodvNetwork(1, []).cores[1]
    for data in (b"", b"\0", b"\x01short", bytes([9]) * 30, bytes([wire.RERR, 0, 0, 9])):
        assert core.receive(data, 2, 1, 0) == []
    assert list(core.counters.refusals) == [Refusal("aodv", "0.0.0.2", "malformed", 5)]
    assert list(core.table) == []


def test_mutated_messages_do_no_harm() -> None:
    rng = random.Random(1)
    network = AodvNetwork(2, line(2), HELLO)
    core = network.cores[1]
    samples = [
        wire.encode(each)
        for each in (
            Request(1, 2, 3, 4, 5, 6, gratuitous=True),
            Request(1, 254, 1, None, 5, 6),
            Reply(1, 2, 3, 4, 5, acknowledge=True),
            Reply(0, 2, 3, 2, 2000),
            wire.Error((wire.Broken(1, 2), wire.Broken(3, 4))),
            wire.Acknowledgement(),
        )
    ]
    for now in range(0, 20_000):
        data = bytearray(rng.choice(samples))
        for _ in range(rng.randint(0, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 255, rng.randrange(256)))
        core.receive(bytes(data), rng.randint(0, 9), rng.randint(0, 255), now * 5_000_000)
        core.wake(now * 5_000_000)
    assert core.counters.refusals.total > 0


def test_invented_destinations_neither_fill_the_table_nor_stay() -> None:
    network = AodvNetwork(1, [], HELLO)
    core, week_ms = network.cores[1], 7 * 24 * 3600 * 1000
    for destination in range(100, 100 + 2 * MAX_ROUTES):
        core.receive(wire.encode(Reply(1, destination, 5, 99, week_ms)), 2, 1, 0)
        core.receive(wire.encode(Request(destination, 1, 98, None, -destination % 2**32, 5)), 2, 1, 0)
    assert 0.8 * MAX_ROUTES < len(list(core.table)) <= MAX_ROUTES
    while list(core.table) and core.next_wake_ns() < 120 * SECOND_NS:
        core.wake(core.next_wake_ns())
    assert not list(core.table)


def test_counters_add_up() -> None:
    network = AodvNetwork(4, line(4))
    network.send(1, 4)
    network.run(3)
    total: Counter[str] = Counter()
    for core in network.cores.values():
        rows = core.counters.by_kind()
        packets = rows.pop("packet")
        for way in ("sent", "forwarded", "received"):
            assert packets[way] == sum(row[way] for row in rows.values())
            assert packets[f"{way}_bytes"] == 28 * packets[way]
        total.update({kind: row["sent"] + row["forwarded"] for kind, row in rows.items()})
    assert +total == kinds_sent(network)
    assert total["RREP"] == 3


def test_the_same_seed_gives_the_same_messages() -> None:
    def run(seed: int) -> list[tuple[int, int, int | None, bytes]]:
        network = AodvNetwork(8, [*ring(8), (1, 5), (2, 6)], HELLO, seed, loss=0.2)
        for number in range(20):
            network.send(
                1 + number % 8, 1 + (number * 3 + 1) % 8 if number % 8 != (number * 3 + 1) % 8 else 1
            )
            network.run(0.7)
        return network.log

    assert run(1) == run(1)
    assert run(1) != run(2)


Step = tuple[int, int, bool, float]
"""Two nodes, whether their link comes or goes (or else one sends to the other), and what time passes."""


def check_for_loops(network: AodvNetwork) -> None:
    for destination in (1, 2):
        for here in network.cores:
            path = network.route(here, destination)
            assert len(path) == len(set(path)), f"{path} at {network.now_ns}"


def go_through(network: AodvNetwork, steps: Iterable[Step]) -> None:
    nodes = len(network.cores)
    network.on_event = lambda: check_for_loops(network)
    for one, other, toggles, seconds in steps:
        here, there = 1 + one % nodes, 1 + other % (nodes if toggles else 2)
        if here != there and toggles:
            network.links ^= {frozenset((here, there))}
        elif here != there:
            network.send(here, there)
        network.run(seconds)


def config_for(detection: str) -> AodvConfig:
    return HELLO if detection == "hello" else AodvConfig()


PAUSES = (0.01, 0.05, 0.3, 2.0)


@given(
    nodes=st.integers(3, 7),
    seed=st.integers(0, 1 << 30),
    loss=st.sampled_from([0.0, 0.3]),
    jitter_ns=st.sampled_from([0, 40_000_000]),
    detection=st.sampled_from(["feedback", "hello"]),
    steps=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans(), st.sampled_from(PAUSES)),
        min_size=10,
        max_size=60,
    ),
)
@settings(max_examples=50, deadline=None)
def test_no_loop_whatever_changes_gets_lost_or_overtakes(
    nodes: int, seed: int, loss: float, jitter_ns: int, detection: str, steps: list[Step]
) -> None:
    go_through(AodvNetwork(nodes, ring(nodes), config_for(detection), seed, loss, jitter_ns), steps)


@pytest.mark.parametrize("detection", ["feedback", "hello"])
def test_no_loop_in_long_histories(detection: str) -> None:
    """These seeds find a loop if sequence numbers do not grow with a break, or longer routes are taken."""
    for seed in range(40):
        rng = random.Random(seed)
        nodes = rng.randint(4, 6)
        loss, jitter_ns = rng.choice([0, 0.3]), rng.choice([0, 40_000_000])
        steps = [
            (rng.randrange(nodes), rng.randrange(nodes), rng.random() < 0.3, rng.choice(PAUSES))
            for _ in range(80)
        ]
        go_through(AodvNetwork(nodes, ring(nodes), config_for(detection), seed, loss, jitter_ns), steps)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
def test_sequence_numbers_go_round(start: int, ahead: int) -> None:
    later = (start + ahead) % 2**32
    assert newer(later, start)
    assert not newer(start, later)
    assert not newer(start, start)
    assert newest(start, later) == newest(later, start) == later


def test_an_old_or_longer_route_changes_nothing() -> None:
    table = RouteTable(15 * SECOND_NS)
    table.learn(9, 2, 3, 100, SECOND_NS)
    for other in ((3, 1, 99), (3, 3, 100), (3, 4, 100)):
        assert table.learn(9, *other, 9 * SECOND_NS) is None
    route = table.get(9)
    assert route is not None and (route.next_hop, route.hops, route.sequence) == (2, 3, 100)
    table.invalidate(route, 0)
    assert table.learn(9, 3, 1, 100, SECOND_NS) is None  # as new as the one that broke: not new enough
    assert table.learn(9, 3, 5, 101, SECOND_NS) is route


def test_seen_requests_are_forgotten_in_time_and_bounded() -> None:
    seen = SeenRequests(SECOND_NS)
    assert seen.is_new(1, 1, 0)
    assert not seen.is_new(1, 1, SECOND_NS - 1)
    assert seen.is_new(1, 1, 3 * SECOND_NS)
    for number in range(3 * SEEN_LIMIT):
        assert seen.is_new(2, number, 3 * SECOND_NS)
    assert len(seen._seen) == SEEN_LIMIT


def test_a_rate_limit_says_when() -> None:
    limit = RateLimit(2)
    for now in (0, 10):
        assert limit.free_at_ns(now) == now
        limit.take(now)
    assert limit.free_at_ns(20) == SECOND_NS


def test_a_destination_takes_the_number_it_is_asked_for() -> None:
    """Others count it up when routes break: its answer must be at least as new."""
    network = AodvNetwork(1, [])
    core = network.cores[1]
    ask = Request(7, 0, 1, 500, 2, 3)
    (sent,) = core.receive(wire.encode(ask), 2, 1, 0)
    reply = wire.decode(sent[0]) if isinstance(sent[0], bytes) else None
    assert isinstance(reply, Reply) and reply.destination_sequence == 500
