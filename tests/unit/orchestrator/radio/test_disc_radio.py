"""The disc radio: who hears what, when, and how the channel is shared."""

from collections import Counter

import pytest

from node_agent.ports.virtual.loop import NS, VirtualLoop
from orchestrator.radio.disc import DiscRadio
from orchestrator.radio.medium import BROADCAST, Frame, Medium

MBIT = 1_000_000


class Net:
    """Stations on a line, 100 m of range, and what each of them heard."""

    def __init__(self, *at_m: float, bandwidth_bps: int = 8 * MBIT, latency_ns: int = 0) -> None:
        self.loop = VirtualLoop()
        self.radio = DiscRadio(self.loop, 100.0, bandwidth_bps, latency_ns)
        self.heard: list[tuple[int, str, object]] = []
        self.failed: list[tuple[int, str, object]] = []
        names = "abcdefghij"[: len(at_m)]
        for name in names:
            self.attach(name)
        self.move(**dict(zip(names, at_m, strict=True)))

    def attach(self, name: str) -> None:
        self.radio.attach(
            name,
            lambda frame: self.heard.append((self.loop.now_ns(), name, frame.payload)),
            lambda frame: self.failed.append((self.loop.now_ns(), name, frame.payload)),
        )

    def move(self, **at_m: float) -> None:
        self.radio.move({name: (x, 0.0) for name, x in at_m.items()})

    def send(self, source: str, destination: str, payload: object = None, size: int = 1000) -> None:
        self.radio.send(Frame(source, destination, size, payload))

    def run(self, until_ns: int = NS) -> None:
        self.loop.run_until_ns(until_ns)


MS = 1_000_000  # the airtime of 1000 bytes at 8 Mbit/s


def test_it_is_a_medium() -> None:
    radio = Net(0).radio
    medium: Medium = radio
    assert medium is radio and radio.links() == {"a": {}}


def test_a_frame_arrives_after_airtime_and_latency() -> None:
    net = Net(0, 100, latency_ns=7)
    net.send("a", "b", "x")
    net.run()
    assert net.heard == [(MS + 7, "b", "x")]


def test_airtime_is_rounded_up_to_whole_nanoseconds() -> None:
    radio = Net(0, bandwidth_bps=11 * MBIT).radio
    assert radio.airtime_ns(1500) == 1_090_910


def test_out_of_range_is_told_to_the_sender() -> None:
    net = Net(0, 100.5)
    net.send("a", "b", "x")
    net.send("a", "nobody", "y")
    net.run()
    assert net.heard == []
    assert net.failed == [(MS, "a", "x"), (2 * MS, "a", "y")]


def test_the_end_of_the_transmission_decides() -> None:
    net = Net(0, 50)
    net.send("a", "b", "leaves")
    net.run(MS // 2)
    net.move(a=0, b=500)
    net.run(MS)
    assert net.failed == [(MS, "a", "leaves")]
    net.send("a", "b", "comes")
    net.run(MS + MS // 2)
    net.move(a=0, b=50)
    net.run()
    assert net.heard == [(2 * MS, "b", "comes")]


def test_a_broadcast_reaches_everyone_in_range_and_never_fails() -> None:
    net = Net(0, 50, 100, 150)
    net.send("a", BROADCAST, "x")
    net.send("d", BROADCAST, "y")
    net.run()
    assert [(node, what) for _, node, what in net.heard] == [("b", "x"), ("c", "x"), ("b", "y"), ("c", "y")]
    assert net.failed == []


def test_links_cost_one_hop_each_way_and_follow_the_nodes() -> None:
    net = Net(0, 100, 200)
    assert net.radio.links() == {"a": {"b": 1.0}, "b": {"a": 1.0, "c": 1.0}, "c": {"b": 1.0}}
    net.move(a=0, c=10)
    assert net.radio.links() == {"a": {"c": 1.0}, "b": {}, "c": {"a": 1.0}}


def test_neighbours_take_turns() -> None:
    net = Net(0, 10, 20)
    for index in range(3):
        for node in "abc":
            net.send(node, BROADCAST, f"{node}{index}")
    net.run()
    first_heard = dict.fromkeys(what for _, _, what in net.heard)
    assert list(first_heard) == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]
    assert net.heard[-1][0] == 9 * MS


def test_distant_pairs_talk_at_the_same_time() -> None:
    net = Net(0, 50, 1000, 1050)
    net.send("a", "b", "x")
    net.send("c", "d", "y")
    net.run()
    assert net.heard == [(MS, "b", "x"), (MS, "d", "y")]


def delivered_over(hops: int) -> int:
    """Frames that reach the end of a chain in one second while its head always has one more to send."""
    net = Net(*(100.0 * index for index in range(hops + 1)))
    names = "abcdefghij"[: hops + 1]
    arrived = 0

    def relay(index: int) -> None:
        nonlocal arrived
        if index == hops:
            arrived += 1
        else:
            net.send(names[index], names[index + 1])

    for index, name in enumerate(names):
        net.radio.attach(name, lambda frame, index=index: relay(index), lambda frame: None)  # type: ignore[misc]

    def feed() -> None:
        net.send("a", "b")
        net.loop.call_at_ns(net.loop.now_ns() + MS, feed)

    feed()
    net.run()
    return arrived


def test_a_second_hop_halves_the_throughput() -> None:
    one, two = delivered_over(1), delivered_over(2)
    assert one == 1000
    assert two == pytest.approx(one / 2, rel=0.05)


def test_a_full_queue_drops_and_counts() -> None:
    net = Net(0, 10)
    for index in range(150):
        net.send("a", "b", index)
    net.run()
    assert [what for _, _, what in net.heard] == list(range(100))
    counters = net.radio.counters()
    assert (counters["a"].sent, counters["a"].queue_drops, counters["b"].received) == (100, 50, 100)


def test_saturated_stations_share_evenly() -> None:
    net = Net(*(float(index) for index in range(10)))
    for node in "abcdefghij":
        for _ in range(100):
            net.send(node, BROADCAST, node)
    net.run(500 * MS)
    sent = Counter(str(what) for _, _, what in net.heard)
    assert set(sent.values()) == {50 * 9}


def test_a_run_can_be_repeated() -> None:
    def run() -> list[tuple[int, str, object]]:
        net = Net(0, 60, 120, 180, 240)
        for index in range(200):
            net.send("abcde"[index * 7 % 5], "abcde"[index * 3 % 5], index, size=100 + index)
            if index % 20 == 0:
                net.run(net.loop.now_ns() + MS)
        net.run()
        return net.heard + net.failed

    assert run() == run()


@pytest.mark.parametrize(
    ("range_m", "bandwidth", "latency", "queue"), [(0, 1, 0, 1), (1, 0, 0, 1), (1, 1, -1, 1), (1, 1, 0, 0)]
)
def test_impossible_radios_are_refused(range_m: float, bandwidth: int, latency: int, queue: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        DiscRadio(VirtualLoop(), range_m, bandwidth, latency, queue)
