"""The sets behind the daemon: topology with ANSNs and borders, duplicates, announcements, paths, packets."""

import random

from hypothesis import given
from hypothesis import strategies as st

from node_agent.olsr import announced, duplicates, topology, validity, wire
from node_agent.olsr.announced import Announced
from node_agent.olsr.duplicates import DuplicateSet
from node_agent.olsr.hello import HelloContent
from node_agent.olsr.listing import MAX_LISTED, Listing
from node_agent.olsr.outbox import Outbox
from node_agent.olsr.paths import Path, Paths
from node_agent.olsr.quality import metric
from node_agent.olsr.reach import Reach
from node_agent.olsr.speaker import split_tc
from node_agent.olsr.topology import Topology
from tests.unit.olsr_network import SECOND

_LQ, _RFC = metric("etx_ff"), metric("hops")
_PERFECT = bytes((255, 255, 0, 0))


def _tc(seqno: int, ansn: int, *neighbours: int, originator: int = 1, vtime: float = 20.0) -> wire.Message:
    listed = tuple(wire.Neighbour(address, _PERFECT) for address in neighbours)
    body = wire.encode_tc(wire.Tc(ansn, 255, 255, listed), wire.LQ_TC)
    return wire.Message(wire.LQ_TC, validity.encode(vtime), originator, 255, 0, seqno, body)


def _edges(known: Topology) -> list[int]:
    return sorted(known.origins[1].edges) if 1 in known.origins else []


def test_a_newer_tc_replaces_and_an_older_one_is_ignored() -> None:
    known = Topology(_LQ)
    known.receive_tc(_tc(65535, 65535, 2, 3), 0)
    known.receive_tc(_tc(1, 1, 3, 4), 0)  # both counters have wrapped around
    assert _edges(known) == [3, 4]
    known.receive_tc(_tc(0, 0, 9), 0)
    assert _edges(known) == [3, 4]
    assert known.origins[1].ignored == 1


def test_the_same_tc_again_renews_without_a_change() -> None:
    known = Topology(_LQ)
    known.receive_tc(_tc(1, 1, 2), 0)
    changes = known.changes
    known.receive_tc(_tc(2, 1, 2), 10 * SECOND)
    known.expire(25 * SECOND)
    assert _edges(known) == [2] and known.changes == changes
    known.expire(30 * SECOND)
    assert _edges(known) == [] and known.changes > changes


def test_a_restarted_peer_is_believed_at_its_second_tc() -> None:
    known = Topology(_LQ)
    known.receive_tc(_tc(40_000, 500, 2), 0)
    known.receive_tc(_tc(100, 3, 5), 0)
    assert _edges(known) == [2]
    known.receive_tc(_tc(103, 3, 5), 0)
    assert _edges(known) == [5]


def test_a_restart_just_below_the_old_counters_takes_a_few_more() -> None:
    known = Topology(_LQ)
    known.receive_tc(_tc(1000, 500, 2), 0)
    for number in range(3):
        known.receive_tc(_tc(900 + number, 3, 5), 0)
        assert _edges(known) == [2]
    known.receive_tc(_tc(903, 3, 5), 0)
    assert _edges(known) == [5]


def test_rfc_tcs_of_one_ansn_add_up() -> None:
    known = Topology(_RFC)

    def hear(seqno: int, ansn: int, *neighbours: int) -> None:
        tc = wire.Tc(ansn, 0, 0, tuple(wire.Neighbour(address, b"") for address in neighbours))
        known.receive_tc(wire.Message(wire.TC, 0x48, 1, 255, 0, seqno, wire.encode_tc(tc, wire.TC)), 0)

    hear(1, 1, 2)
    hear(2, 1, 3)
    assert _edges(known) == [2, 3]
    hear(3, 2, 4)
    assert _edges(known) == [4]


@given(st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=60), st.sets(st.integers(0, 2**32 - 1)))
def test_split_tcs_say_together_what_one_would(now: set[int], before: set[int]) -> None:
    known = Topology(_LQ)
    known.receive_tc(_tc(1, 1, *sorted(before)), 0)
    listed = [wire.Neighbour(address, _PERFECT) for address in sorted(now)]
    parts = list(split_tc(2, listed, 4 + 8 * 7, measured=True))
    assert all(len(part.neighbours) <= 7 for part in parts)
    for number, part in enumerate(parts):
        body = wire.encode_tc(part, wire.LQ_TC)
        known.receive_tc(wire.Message(wire.LQ_TC, 0x48, 1, 255, 0, 2 + number, body), 0)
    assert _edges(known) == sorted(now)


def _count_new(seen: DuplicateSet, pairs: list[tuple[int, int]], now: int) -> int:
    messages = [wire.Message(wire.LQ_TC, 0, originator, 9, 0, seqno, b"") for originator, seqno in pairs]
    new = seen.unseen(frozenset(map(duplicates.key, messages)))
    seen.remember(new, now)
    return len(new)


def test_duplicates_are_remembered_for_a_while_and_in_bounded_memory() -> None:
    seen = DuplicateSet()
    assert _count_new(seen, [(1, 65535), (1, 65535), (1, 0)], 0) == 2
    assert _count_new(seen, [(1, 65535), (2, 65535)], 0) == 1
    seen.expire(seen.next_expiry)
    assert _count_new(seen, [(1, 65535)], 31 * SECOND) == 0
    seen.expire(seen.next_expiry)
    assert _count_new(seen, [(1, 65535)], 61 * SECOND) == 1
    rng = random.Random(1)
    for _ in range(5000):
        _count_new(seen, [(rng.getrandbits(32), rng.getrandbits(16)) for _ in range(40)], 62 * SECOND)
    assert len(seen) <= 2 * duplicates.MAX_KEYS


def test_the_topology_is_bounded() -> None:
    known = Topology(_LQ)
    for originator in range(1, 2 * topology.MAX_ORIGINATORS):
        neighbours = range(originator, originator + 100)
        known.receive_tc(_tc(1, 1, *neighbours, originator=originator), 0)
    assert len(known.origins) <= topology.MAX_ORIGINATORS
    assert sum(len(origin.edges) for origin in known.origins.values()) <= topology.MAX_EDGES
    assert known.evicted
    known.expire(60 * SECOND)
    known.receive_tc(_tc(1, 1, 2), 60 * SECOND)
    assert _edges(known) == [2]


def test_announcements_are_bounded_and_expire_one_by_one() -> None:
    known = Announced[int]()
    known.update(1, [10, 11], 5)
    known.update(1, [11], 9)
    known.expire(5)
    assert dict(known.each()) == {1: {11: 9}}
    for originator in range(2 * announced.MAX_ORIGINATORS):
        known.update(originator, range(1000), 20)
    sizes = [len(items) for _, items in known.each()]
    assert len(sizes) <= announced.MAX_ORIGINATORS and max(sizes) <= announced.MAX_PER_ORIGINATOR


def test_equal_costs_are_told_apart_by_hops_then_by_gateway() -> None:
    edges = {2: {9: 1024}, 3: {9: 1024}, 4: {5: 512}, 5: {9: 512}}
    first = [(node, Path(1024, 1, node, 0)) for node in (4, 3, 2)]
    assert Paths([1], first, edges)[9] == Path(2048, 2, 2, 0)
    assert Paths([1], reversed(first), edges) == Paths([1], first, edges)


def _message(size: int) -> wire.Message:
    return wire.Message(wire.LQ_TC, 0, 1, 255, 0, 0, bytes(size - wire.MESSAGE_HEADER_SIZE))


@given(st.lists(st.integers(12, 1600), max_size=40))
def test_packets_fit_the_mtu_and_end_with_one_hello(sizes: list[int]) -> None:
    outbox = Outbox(1500)
    taken = sum(outbox.put(_message(size), 10, 0) for size in sizes)
    assert taken == sum(size <= 1468 for size in sizes)
    hello = wire.Message(wire.LQ_HELLO, 0, 1, 1, 0, 0, bytes(4))
    packets = outbox.take([hello], 5)
    assert all(len(wire.encode_packet(0, packet)) <= 1472 for packet in packets)
    assert sum(len(packet) for packet in packets) == taken + 1
    assert packets[-1][-1] == hello


def test_a_full_packet_leaves_at_once_and_the_rest_waits() -> None:
    outbox = Outbox(1500)
    outbox.put(_message(1000), 100, 7)
    assert outbox.due_ns == 100
    outbox.put(_message(1000), 200, 8)
    assert outbox.due_ns == 8
    assert [len(packet) for packet in outbox.take([], 8)] == [1]
    assert outbox.due_ns == 200
    assert [len(packet) for packet in outbox.take([], 200)] == [1]


_LISTED = st.dictionaries(st.integers(1, 6), st.integers(1024, 1026), max_size=5)
_HELLOS = st.lists(st.tuples(_LISTED, st.frozensets(st.integers(1, 6)), st.integers(1, 5)), max_size=12)


@given(_HELLOS)
def test_each_whom_a_neighbour_lists_is_forgotten_in_its_own_time(
    hellos: list[tuple[dict[int, int], frozenset[int], int]],
) -> None:
    listing, expected = Listing(frozenset({6})), dict[int, tuple[int, int]]()
    for now, (listed, gone, validity_ns) in enumerate(hellos):
        before = dict(listing.costs)
        expired = listing.expire(now)
        expected = {address: entry for address, entry in expected.items() if entry[1] > now}
        assert listing.costs == {address: cost for address, (cost, _) in expected.items()}
        assert expired == (before != listing.costs)
        before = dict(listing.costs)
        content = HelloContent(SECOND, 3, {}, listed, gone | listed.keys())
        news = listing.update(content, now + validity_ns)
        for address in gone - listed.keys():
            expected.pop(address, None)
        expected |= {address: (cost, now + validity_ns) for address, cost in listed.items() if address != 6}
        assert dict(listing.each_until()) == {address: until for address, (_, until) in expected.items()}
        assert listing.costs == {address: cost for address, (cost, _) in expected.items()}
        assert news == (before != listing.costs)
        assert all(listing.next_expiry <= until for _, until in expected.values())


def test_a_listing_is_bounded() -> None:
    listing = Listing(frozenset())
    for start in range(0, 2 * MAX_LISTED, 100):
        listed = dict.fromkeys(range(start, start + 100), 1024)
        listing.update(HelloContent(SECOND, 3, {}, listed, frozenset(listed)), SECOND)
    assert len(listing.costs) == MAX_LISTED and listing.refused
    assert listing.expire(SECOND) and not listing.costs


@given(
    st.frozensets(st.integers(1, 9), max_size=3),
    st.dictionaries(st.integers(1, 9), st.dictionaries(st.integers(1, 9), st.just(1024), max_size=3)),
)
def test_whoever_has_a_path_can_be_reached(first: frozenset[int], edges: dict[int, dict[int, int]]) -> None:
    hops = [(node, Path(1024, 1, node, 0)) for node in sorted(first)]
    paths = Paths([0], hops, edges)
    reach = Reach(first, edges)
    assert [node for node in range(10) if reach.covers({node})] == sorted(paths)
    # Whoever asks for a single path, without searching for the others, gets the same.
    assert {node: path for node in range(10) if (path := Paths([0], hops, edges).get(node))} == paths
