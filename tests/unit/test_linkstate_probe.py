"""Probers on a lossy medium in virtual time: what they find out, what it costs, and what cannot harm them."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from node_agent.linkstate.measured import graph_of
from node_agent.linkstate.probe.core import ProbeConfig, ProbeCore
from node_agent.linkstate.probe.estimator import WINDOW, Arrivals
from node_agent.linkstate.probe.messages import (
    HEADERS,
    PAIR_BYTES,
    SINGLE_BYTES,
    Estimate,
    Known,
    Probe,
    Reply,
    decode,
    encode,
    padded,
)
from node_agent.linkstate.probe.prober import Prober
from node_agent.routing.shortest_path import distances
from node_agent.virtual.host import VirtualHost
from node_agent.virtual.interface import Frame, OnFrame
from node_agent.virtual.loop import VirtualLoop
from node_agent.virtual.port import VirtualPort
from orchestrator.radio.disc import DiscRadio

LATENCY_NS = 2_000_000
BANDWIDTH = 1_000_000
SECOND = 10**9
Losses = Mapping[tuple[str, str], float]


class LossyRadio(DiscRadio):
    """Loses each frame with the probability that its direction has, and counts the bytes of each sender."""

    def __init__(self, loop: VirtualLoop, losses: Losses, seed: int) -> None:
        super().__init__(loop, 100.0, BANDWIDTH, LATENCY_NS)
        self.losses = dict(losses)
        self.bytes_from: dict[str, int] = {}
        self._random = random.Random(seed)

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        def maybe(frame: Frame) -> None:
            if self._random.random() >= self.losses.get((frame.source, node), 0.0):
                received(frame)

        super().attach(node, maybe, failed)

    def send(self, frame: Frame) -> None:
        self.bytes_from[frame.source] = self.bytes_from.get(frame.source, 0) + frame.size
        super().send(frame)


class Nodes:
    """All in range of each other; ``targets`` says whom each of them probes."""

    def __init__(self, targets: Mapping[str, list[str]], losses: Losses, seed: int = 1) -> None:
        self.loop = VirtualLoop()
        self.radio = LossyRadio(self.loop, losses, seed)
        self.probers: dict[str, Prober] = {}
        for node in targets:
            host = VirtualHost(node, node, self.loop, self.radio, lambda destination: destination)
            self.probers[node] = Prober(VirtualPort(host, seed), targets[node], ProbeConfig())
        self.radio.move(dict.fromkeys(targets, (0.0, 0.0)))

    def run(self, seconds: float) -> None:
        async def scenario() -> None:
            async with AsyncExitStack() as stack:
                for prober in self.probers.values():
                    await stack.enter_async_context(prober)
                await asyncio.sleep(seconds)
                self.estimates = {node: prober.estimates() for node, prober in self.probers.items()}
                self.readings = {node: await prober.read() for node, prober in self.probers.items()}

        self.loop.run_until_complete(scenario())
        self.loop.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("forward", "backward"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.4)])
def test_estimates_are_close_to_the_truth(forward: float, backward: float, seed: int) -> None:
    """Deliveries within 0.18, three standard errors of 64 packets; delay and bandwidth within a tenth."""
    nodes = Nodes({"a": ["b"], "b": []}, {("a", "b"): forward, ("b", "a"): backward}, seed)
    nodes.run(60)
    found = nodes.estimates["a"]["b"]
    assert found.delivery_forward == pytest.approx(1 - forward, abs=0.18)
    assert found.delivery_backward == pytest.approx(1 - backward, abs=0.18)
    airtime = SINGLE_BYTES * 8 / BANDWIDTH
    assert found.latency == pytest.approx(LATENCY_NS / 1e9 + airtime, rel=0.1)
    assert found.bandwidth == pytest.approx(BANDWIDTH, rel=0.1)


def test_the_budget_is_kept() -> None:
    """By those who probe; and nobody answers with more than was asked."""
    nodes = Nodes({"a": ["b", "c"], "b": [], "c": []}, {})
    nodes.run(100)
    sent = nodes.radio.bytes_from
    assert 0.9 * 100 < sent["a"] / ProbeConfig().budget <= 101
    assert sent["b"] + sent["c"] <= sent["a"]


def test_costs_of_the_whole_way_are_learned_from_those_downstream() -> None:
    nodes = Nodes(
        {"source": ["near", "far"], "near": ["sink"], "far": ["sink"], "sink": []}, {("far", "sink"): 0.5}
    )
    nodes.run(60)
    graph = graph_of(nodes.readings["source"], {}, None, 0)
    assert set(graph.costs["source"]) == {"near", "far"}
    assert graph.costs["near"]["sink"] == pytest.approx(1.0)
    assert graph.costs["far"]["sink"] == pytest.approx(2.0, rel=0.4)
    assert distances(graph, "source")["sink"] == pytest.approx(2.0)
    assert nodes.readings["sink"].edges == {"sink": {}}


def test_a_silent_peer_has_no_link() -> None:
    nodes = Nodes({"a": ["b", "c"], "b": [], "c": []}, {})

    async def break_link() -> None:
        await asyncio.sleep(30)
        nodes.radio.losses["b", "a"] = 1.0

    breaking = nodes.loop.create_task(break_link())
    nodes.run(40)
    assert breaking.done()
    assert set(nodes.estimates["a"]) == {"c"}
    assert set(nodes.readings["a"].edges["a"]) == {"c"}


def test_same_seed_same_estimates() -> None:
    runs = [Nodes({"a": ["b"], "b": ["a"]}, {("a", "b"): 0.3}) for _ in range(2)]
    for nodes in runs:
        nodes.run(20)
    assert runs[0].estimates == runs[1].estimates


def test_arrivals_in_any_order() -> None:
    arrivals = Arrivals()
    assert [arrivals.add(number) for number in (1, 2, 5, 4, 4)] == [True, True, True, True, False]
    assert arrivals.share == 4 / 5
    arrivals.add(5 + WINDOW)
    assert arrivals.share == 1 / WINDOW
    assert not arrivals.add(5)  # too old to say


@pytest.mark.parametrize("size", [SINGLE_BYTES, PAIR_BYTES])
def test_probes_have_the_size_that_is_asked_for(size: int) -> None:
    for number in (1, 2**40):
        assert size - 2 <= len(padded(Probe(2**32 - 1, number, 2**62, 2), size)) + HEADERS <= size


def core() -> ProbeCore:
    made = ProbeCore(ProbeConfig(), "10.0.0.1", ["10.0.0.2"], session=7, now_ns=0)
    for second in range(20):
        made.wake(second * SECOND)
    return made


LIE = Known("10.0.0.3", 1, {"10.0.0.4": Estimate(7.0, 1.0, None, None)})


@pytest.mark.parametrize(
    "reply",
    [
        Reply(8, 5, 1, 0, 0, 1, 9, 9, 9, None),  # to a former self
        Reply(7, 5, 1, 30 * SECOND, 0, 1, 9, 9, 9, None),  # sent in the future
        Reply(7, 5, 1, 0, 0, 1, 900, 9, 9, None),  # more probes than were sent
        Reply(7, 5, 1, 0, 0, 900, 9, 9, 9, None),
        Reply(7, 5, 1, 0, 0, 1, 9, 9, 9, -5),
    ],
)
def test_impossible_replies_are_ignored(reply: Reply) -> None:
    prober = core()
    assert prober.receive(encode(reply), "10.0.0.2", 20 * SECOND) is None
    assert prober.estimates(20 * SECOND) == {}


def test_a_peer_that_was_restarted_counts_anew() -> None:
    prober = core()
    for number in range(1, 21):
        prober.receive(
            encode(Reply(7, 5, number, 0, 0, number, number, number, number, None)), "10.0.0.2", SECOND
        )
    assert set(prober.estimates(SECOND)) == {"10.0.0.2"}
    again = Reply(7, 6, 20, 0, 0, 1, 20, 1, 1, None)  # of 20 probes it has seen the last
    prober.receive(encode(again), "10.0.0.2", 2 * SECOND)
    assert prober.estimates(2 * SECOND) == {}


def test_lies_and_strangers_are_ignored() -> None:
    prober = core()
    honest = Reply(7, 5, 9, 19 * SECOND, 0, 9, 9, 9, 9, None, (LIE,))
    prober.receive(encode(honest), "10.0.0.66", 20 * SECOND)
    assert prober.estimates(20 * SECOND) == {}
    prober.receive(encode(honest), "10.0.0.2", 20 * SECOND)
    assert set(prober.reading(20 * SECOND).edges) == {"10.0.0.1", "10.0.0.2"}


def test_whatever_comes_is_survived() -> None:
    prober, rng = core(), random.Random(1)
    good = [encode(Reply(7, 5, 1, 0, 0, 1, 9, 9, 9, 5, (LIE,))), padded(Probe(1, 1, 0, 0), PAIR_BYTES)]
    for turn in range(20_000):
        data = bytearray(good[turn % 2])
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(min(60, len(data)))] = rng.randrange(256)
        answer = prober.receive(bytes(data[: rng.randrange(len(data) + 1)]), "10.0.0.2", 20 * SECOND)
        assert answer is None or len(answer.data) <= len(data)
    assert decode(b"\x91" * 100_000) is None
