"""The channel as the Medium of virtual hosts: names, queues, ground truth, and the same run each time."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from node_agent.ports.virtual.loop import VirtualLoop
from orchestrator.errors import BadInput
from orchestrator.radio.airtime import ETHERNET_HEADER, Airtime
from orchestrator.radio.dcf_medium import DcfMedium
from orchestrator.radio.medium import BROADCAST, Frame, Medium
from orchestrator.radio.presets import ns3_range, radio_preset
from orchestrator.radio.settings import Mac
from orchestrator.radio.survey import survey


def ignore(frame: Frame) -> None:
    pass


def test_it_is_a_medium_and_carries_frames_by_name() -> None:
    loop = VirtualLoop()
    medium: Medium = DcfMedium(loop, ["a", "b"], [(0, 0), (100, 0)], radio_preset("seed-80211b"), Mac(), 1)
    got: list[tuple[int, Frame]] = []
    medium.attach("b", lambda frame: got.append((loop.now_ns(), frame)), ignore)
    frame = Frame("a", "b", 1498, object())
    medium.send(frame)
    loop.run_until_ns(10_000_000)
    assert got == [(1_308_000, frame)]
    assert got[0][1].payload is frame.payload
    loop.close()


@pytest.mark.parametrize("later", [1, 1000])
def test_the_clock_is_right_at_a_delivery_whatever_happens_next(later: int) -> None:
    loop = VirtualLoop()
    medium = DcfMedium(loop, ["a", "b"], [(0, 0), (100, 0)], radio_preset("seed-80211b"), Mac(), 1)
    happened: list[tuple[str, int]] = []
    medium.attach("b", lambda frame: happened.append(("frame", loop.now_ns())), ignore)
    medium.send(Frame("a", "b", 1498, None))
    loop.call_at_ns(1_308_000 + later, lambda: happened.append(("timer", loop.now_ns())))
    loop.run_until_ns(1_308_000 + later)
    assert happened == [("frame", 1_308_000), ("timer", 1_308_000 + later)]
    loop.close()


def test_what_a_delivery_causes_happens_before_later_frames() -> None:
    loop = VirtualLoop()
    medium = DcfMedium(loop, ["a", "b"], [(0, 0), (100, 0)], radio_preset("seed-80211b"), Mac(), 1)
    happened: list[object] = []

    def received(frame: Frame) -> None:
        happened.append(frame.payload)
        loop.call_at_ns(loop.now_ns() + 1000, happened.append, f"after {frame.payload}")

    medium.attach("b", received, ignore)
    for number in range(3):
        medium.send(Frame("a", "b", 1498, number))
    loop.run_until_ns(10**9)
    assert happened == [0, "after 0", 1, "after 1", 2, "after 2"]
    loop.close()


def test_a_full_queue_drops_and_every_frame_is_accounted_for() -> None:
    loop = VirtualLoop()
    medium = DcfMedium(loop, ["a", "b"], [(0, 0), (100, 0)], ns3_range(), Mac(queue_limit=10), 1)
    arrived: list[Frame] = []
    medium.attach("b", arrived.append, ignore)
    for number in range(50):
        medium.send(Frame("a", "b", 1000, number))
    loop.run_until_ns(10**9)
    truth = medium.node_truth()[0]
    assert (truth.acknowledged, truth.queue_drops) == (11, 39)
    assert [frame.payload for frame in arrived] == list(range(11))
    loop.close()


def test_airtime_is_that_of_frames_and_answers() -> None:
    loop = VirtualLoop()
    medium = DcfMedium(loop, ["a", "b", "c"], [(0, 0), (100, 0), (200, 0)], ns3_range(), Mac(), 1)
    air = Airtime(Mac())
    for number in range(3):
        medium.send(Frame("a", "b", 1000, number))
    loop.run_until_ns(10**8)
    medium.send(Frame("c", BROADCAST, 100, "x"))
    loop.run_until_ns(10**9)
    data, answer = air.unicast[1000 + ETHERNET_HEADER], air.ack
    assert medium.airtimes_ns() == {
        "a": 3 * data,
        "b": 3 * answer,
        "c": air.broadcast[100 + ETHERNET_HEADER],
    }
    loop.close()


def test_a_frame_that_is_given_up_is_reported_to_its_sender() -> None:
    loop = VirtualLoop()
    medium = DcfMedium(loop, ["a", "b"], [(0, 0), (1000, 0)], ns3_range(), Mac(), 1)
    failed: list[Frame] = []
    medium.attach("a", ignore, failed.append)
    medium.send(Frame("a", "b", 100, "x"))
    medium.send(Frame("a", BROADCAST, 100, "y"))
    loop.run_until_ns(10**9)
    assert [frame.payload for frame in failed] == ["x"]
    loop.close()


def test_frames_and_their_counts_follow_the_nodes() -> None:
    loop = VirtualLoop()
    radio = radio_preset("seed-80211b")
    medium = DcfMedium(loop, ["a", "b", "c"], [(0, 0), (100, 0), (2000, 0)], radio, Mac(), 1)
    medium.move([(0, 0), (2000, 0), (100, 0)])
    medium.send(Frame("a", "c", 1498, None))
    loop.run_until_ns(10**8)
    assert [tuple(counted) for counted in medium.link_counters()] == [
        ([0, 0, 1], [0, 0, 1]),
        ([0, 0, 0], [0, 0, 0]),
        ([0, 0, 0], [0, 0, 0]),
    ]
    loop.close()


def test_the_cost_of_a_link_is_the_transmissions_that_an_acknowledged_frame_takes() -> None:
    radio, mac = radio_preset("seed-80211b"), Mac()
    air = survey(radio, mac, {"a": (0, 0), "b": (100, 0), "c": (540, 0)})
    assert air.links["a"] == {"b": 1.0}
    assert air.links["c"] == {"b": 1.3}
    assert air.expected[2, 1] == pytest.approx(0.7475, rel=0.01)
    assert air.channel.snr_db[0, 1] == pytest.approx(32.04, abs=0.01)
    assert survey(radio, mac, {"a": (0, 0), "b": (2000, 0)}).links == {"a": {}, "b": {}}


def test_counted_delivery_agrees_with_expected_delivery() -> None:
    loop = VirtualLoop()
    radio = radio_preset("seed-80211b")
    mac = Mac(queue_limit=4000)
    medium = DcfMedium(loop, ["a", "b"], [(0, 0), (440, 0)], radio, mac, 3)
    for _ in range(4000):
        medium.send(Frame("a", BROADCAST, 1500, None))
    loop.run_until_ns(10 * 10**9)
    attempts, received = medium.link_counters()[0]
    assert attempts[1] == 4000
    expected = survey(radio, mac, {"a": (0, 0), "b": (440, 0)}).expected[0, 1]
    assert received[1] / attempts[1] == pytest.approx(expected, abs=0.03)
    loop.close()


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (Frame("a", "nobody", 100, None), 'no node "nobody"'),
        (Frame("nobody", "a", 100, None), 'no node "nobody"'),
        (Frame("a", "a", 100, None), "to itself"),
        (Frame("a", "b", 3000, None), "does not fit"),
    ],
)
def test_bad_frames_are_refused(frame: Frame, says: str) -> None:
    loop = VirtualLoop()
    medium = DcfMedium(loop, ["a", "b"], [(0, 0), (100, 0)], ns3_range(), Mac(), 1)
    with pytest.raises(BadInput, match=says):
        medium.send(frame)
    with pytest.raises(BadInput, match="1 positions were given for 2 nodes"):
        medium.move([(0, 0)])
    loop.close()


def test_bad_channels_are_refused() -> None:
    loop = VirtualLoop()
    with pytest.raises(BadInput, match="1 positions were given for 2 nodes"):
        DcfMedium(loop, ["a", "b"], [(0, 0)], ns3_range(), Mac(), 1)
    with pytest.raises(BadInput, match="the same name"):
        DcfMedium(loop, ["a", "a"], [(0, 0), (1, 1)], ns3_range(), Mac(), 1)
    loop.close()


def busy_run(seed: int) -> str:
    """A digest of everything that arrives in a busy, lossy, moving network."""
    loop = VirtualLoop()
    names = [f"node-{index}" for index in range(12)]
    places = [(index % 4 * 300.0, index // 4 * 300.0) for index in range(12)]
    medium = DcfMedium(loop, names, places, radio_preset("seed-80211b"), Mac(), seed)
    log: list[str] = []
    for name in names:

        def received(frame: Frame, node: str = name) -> None:
            log.append(f"{loop.now_ns()} {node} {frame.payload}")
            if frame.destination != BROADCAST and int(frame.payload) < 400:
                onward = names[names.index(node) ^ 1]
                medium.send(Frame(node, onward, 700, int(frame.payload) + 1))

        medium.attach(name, received, lambda frame: log.append(f"{loop.now_ns()} lost {frame.payload}"))
    for number, name in enumerate(names):
        loop.call_at_ns(number * 1000, medium.send, Frame(name, names[number ^ 1], 1200, 0))
        loop.call_at_ns(number * 777_000, medium.send, Frame(name, BROADCAST, 100, "hello"))
    for step in range(1, 10):
        shift = 20.0 * step
        moved = [(x + shift * (index % 3), y) for index, (x, y) in enumerate(places)]
        loop.call_at_ns(step * 50_000_000, medium.move, moved)
    loop.run_until_ns(500_000_000)
    loop.close()
    assert len(log) > 300
    return hashlib.sha256("\n".join(log).encode()).hexdigest()


def test_the_same_seed_gives_the_same_run_in_any_process() -> None:
    expression = (
        "from tests.unit.orchestrator.radio.test_radio_dcf_medium import busy_run; print(busy_run(5))"
    )
    digests = Counter(
        subprocess.run(
            [sys.executable, "-c", expression],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        ).stdout.strip()
        for hash_seed in ("0", "4242")
    )
    assert len(digests) == 1
    assert busy_run(5) in digests
    assert busy_run(6) not in digests
