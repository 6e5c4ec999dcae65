"""Probers on a lossy medium in virtual time: what they find out, what it costs, and what cannot harm them."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import pytest

from node_agent.linkstate.measured import graph_of
from node_agent.linkstate.probe.core import Outgoing, ProbeConfig, ProbeCore
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
from node_agent.linkstate.probe.tags import SIZE as TAG_SIZE
from node_agent.linkstate.probe.tags import Tags
from node_agent.linkstate.shortest_path import distances
from node_agent.model.checked import Refused
from node_agent.model.refusals import Refusals
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.interface import Frame, OnFrame
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from node_agent.transport.keys import keys_of
from orchestrator.radio.disc import DiscRadio

LATENCY_NS = 2_000_000
BANDWIDTH = 1_000_000
SECOND = 10**9
SECRET = bytes(32)
NODES = [f"10.0.0.{number}" for number in range(1, 6)]
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
        self.ports: list[VirtualPort] = []
        self.probers: dict[str, Prober] = {}
        for node in targets:
            host = VirtualHost(node, node, self.loop, self.radio, lambda destination: destination)
            keys = keys_of(SECRET, "run", node, targets)
            self.ports.append(VirtualPort(host, seed))
            self.probers[node] = Prober(self.ports[-1], targets[node], keys, ProbeConfig())
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


def test_a_clock_that_is_set_does_not_stop_the_probes() -> None:
    """The next probe was due when the clock would again show what it had shown."""
    nodes = Nodes({"a": ["b"], "b": []}, {})

    def wall_clock() -> int:
        now_ns = nodes.loop.now_ns()
        return now_ns + 10_000 * SECOND - (3600 * SECOND if now_ns > 10 * SECOND else 0)

    for port in nodes.ports:
        port.now_ns = wall_clock
    nodes.run(30)
    assert nodes.radio.bytes_from["a"] > 0.9 * 30 * ProbeConfig().budget
    found = nodes.estimates["a"]["b"]
    assert found.latency is not None and found.latency < 0.1


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
        assert size - 2 <= len(padded(Probe(2**32 - 1, number, 2**62, 2), size)) + HEADERS + TAG_SIZE <= size


def core(refusals: Refusals | None = None, targets: Sequence[str] = NODES[1:3]) -> ProbeCore:
    keys = keys_of(SECRET, "run", NODES[0], NODES)
    made = ProbeCore(ProbeConfig(), NODES[0], targets, session=7, now_ns=0, keys=keys, refusals=refusals)
    for half in range(40):
        made.wake(half * SECOND // 2)
    return made


def tagged(message: Probe | Reply | bytes, sender: str, to: str = NODES[0]) -> bytes:
    """As the node itself would send it."""
    data = message if isinstance(message, bytes) else encode(message)
    return Tags(sender, keys_of(SECRET, "run", sender, NODES)).add(data, to)


def hear(prober: ProbeCore, message: Probe | Reply, sender: str, now_ns: int) -> Outgoing | None:
    return prober.receive(tagged(message, sender), sender, now_ns)


def told(number: int, *known: Known, responder: int = 5) -> Reply:
    """A reply to a prober that has sent more than ``number`` probes."""
    return Reply(7, responder, number, 0, 0, number, number, number, number, None, known)


TRUE, FALSE = Estimate(0.5, 0.5, None, None), Estimate(1.0, 1.0, None, None)
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
    assert hear(prober, reply, "10.0.0.2", 20 * SECOND) is None
    assert prober.estimates(20 * SECOND) == {}


def test_a_peer_that_was_restarted_counts_anew() -> None:
    prober = core()
    for number in range(1, 21):
        hear(prober, told(number), "10.0.0.2", SECOND)
    assert set(prober.estimates(SECOND)) == {"10.0.0.2"}
    again = Reply(7, 6, 21, 0, 0, 1, 21, 1, 1, None)  # of 21 probes it has seen the last
    hear(prober, again, "10.0.0.2", 2 * SECOND)
    assert prober.estimates(2 * SECOND) == {}


def test_lies_and_strangers_are_ignored() -> None:
    prober = core()
    honest = Reply(7, 5, 9, 19 * SECOND, 0, 9, 9, 9, 9, None, (LIE,))
    prober.receive(encode(honest), "10.0.0.66", 20 * SECOND)
    assert prober.estimates(20 * SECOND) == {}
    hear(prober, honest, "10.0.0.2", 20 * SECOND)
    assert set(prober.reading(20 * SECOND).edges) == {"10.0.0.1"}


def test_senders_that_somebody_invented_do_not_keep_nodes_of_the_run_from_being_answered() -> None:
    refusals = Refusals()
    prober = core(refusals)
    probe = Probe(1, 1, 0, 0, bytes(40))
    for number in range(2000):
        address = f"10.9.{number // 250}.{number % 250}"
        assert prober.receive(encode(probe), address, SECOND) is None
        assert prober.receive(encode(probe), NODES[3], SECOND) is None  # it has no key
    assert hear(prober, probe, NODES[4], SECOND) is not None
    reasons = Counter[str]()
    for refusal in refusals:
        assert refusal.what == "probe"
        reasons[refusal.reason] += refusal.count
    assert reasons == {"not_member": 2000, "unauthenticated": 2000}


def test_nobody_can_keep_news_of_a_node_from_being_believed() -> None:
    prober = core()
    there, liar = NODES[2], NODES[1]
    forged = told(1, Known(there, 0, {NODES[3]: FALSE}))
    prober.receive(encode(forged), there, 19 * SECOND)  # without the key
    prober.receive(tagged(forged, NODES[4], NODES[0]), there, 19 * SECOND)  # with that of another node
    assert there not in prober.reading(19 * SECOND).edges

    hear(prober, told(1, Known(there, 0, {NODES[3]: FALSE})), liar, 20 * SECOND)
    assert prober.reading(20 * SECOND).edges[there][NODES[3]].cost == 1.0
    hear(prober, told(1, Known(there, 0, {NODES[3]: TRUE})), there, 21 * SECOND)
    assert prober.reading(21 * SECOND).edges[there][NODES[3]].cost == 4.0
    hear(prober, told(2, Known(there, 0, {NODES[3]: FALSE})), liar, 22 * SECOND)
    assert prober.reading(22 * SECOND).edges[there][NODES[3]].cost == 4.0  # it has said so itself


def test_what_others_say_of_a_node_is_believed_until_somebody_knows_better() -> None:
    prober = core()
    far = NODES[4]
    hear(prober, told(1, Known(far, 0, {NODES[3]: FALSE})), NODES[1], 20 * SECOND)
    hear(prober, told(1, Known(far, 3 * SECOND, {NODES[3]: TRUE})), NODES[2], 21 * SECOND)
    assert prober.reading(21 * SECOND).edges[far][NODES[3]].cost == 1.0  # older
    hear(prober, told(2, Known(far, SECOND, {NODES[3]: TRUE})), NODES[2], 22 * SECOND)
    assert prober.reading(22 * SECOND).edges[far][NODES[3]].cost == 4.0
    # Two that tell each other what they have from each other do not keep it alive.
    hear(prober, told(2, Known(far, SECOND + 100_000_000, {NODES[3]: TRUE})), NODES[1], 23 * SECOND)
    assert far not in prober.reading(30 * SECOND).edges


def test_only_nodes_of_the_run_are_told_of() -> None:
    prober = core()
    strangers = {f"10.8.0.{number}": TRUE for number in range(10)}
    hear(prober, told(1, Known(NODES[1], 0, strangers), Known("10.8.0.1", 0, strangers)), NODES[1], SECOND)
    assert set(prober.reading(SECOND).edges) == {NODES[0], NODES[1]}


def test_packets_that_somebody_recorded_change_nothing() -> None:
    refusals = Refusals()
    prober = core(refusals)
    old, new = Probe(1, 1, 0, 0, bytes(60)), Probe(2, 1, 0, 0, bytes(60))
    assert hear(prober, old, NODES[1], SECOND) and hear(prober, new, NODES[1], SECOND)
    assert hear(prober, old, NODES[1], SECOND) is None
    assert hear(prober, new, NODES[1], SECOND) is None
    second = hear(prober, Probe(2, 2, 0, 0, bytes(60)), NODES[1], SECOND)
    assert second is not None
    content = Tags(NODES[1], keys_of(SECRET, "run", NODES[1], NODES)).checked(second.data, NODES[0])
    assert content is not None
    reply = decode(content)
    assert isinstance(reply, Reply) and (reply.number, reply.came) == (2, 2)

    for number in range(1, 20):
        hear(prober, told(number, responder=6), NODES[1], SECOND)
    assert set(prober.estimates(SECOND)) == {NODES[1]}
    hear(prober, told(1, responder=5), NODES[1], SECOND)  # of a former self, or so it seems
    for number in range(1, 20):
        hear(prober, told(number, responder=8), NODES[1], SECOND)
    assert set(prober.estimates(SECOND)) == {NODES[1]}
    hear(prober, told(1, responder=6), NODES[1], SECOND)
    assert set(prober.estimates(SECOND)) == {NODES[1]}
    assert [each.reason for each in refusals] == ["replay"]


def test_probes_recorded_before_this_node_was_restarted_do_not_end_the_session_that_goes_on() -> None:
    """The old session seemed to be the newer one, and the true one was refused for the rest of the run."""
    prober = core()
    for number in range(1, 40):
        assert hear(prober, Probe(2, number, 0, 0, bytes(60)), NODES[1], SECOND) is not None
        hear(prober, Probe(1, number, 0, 0, bytes(60)), NODES[1], SECOND)
        hear(prober, Probe(1, number, 0, 0, bytes(60)), NODES[1], SECOND)
    for session in range(100, 2000):  # nor does who has a key of its own take more than its share
        hear(prober, Probe(session, 1, 0, 0, bytes(60)), NODES[4], SECOND)
    assert hear(prober, Probe(2, 40, 0, 0, bytes(60)), NODES[1], SECOND) is not None


def test_replies_of_a_former_self_do_not_end_the_session_that_goes_on() -> None:
    """The prober had never heard the former self, and took it for the newer one."""
    prober = core()
    former = tagged(told(1, responder=5), NODES[1])  # somebody else heard it, and nobody here
    for number in range(2, 10):
        hear(prober, told(number, responder=6), NODES[1], SECOND)
    prober.receive(former, NODES[1], SECOND)
    for number in range(10, 20):
        hear(prober, told(number, responder=6), NODES[1], 9 * SECOND)
    assert set(prober.estimates(9 * SECOND)) == {NODES[1]}


def test_a_prober_that_many_old_sessions_have_pushed_out_is_answered_and_believes_the_answers() -> None:
    here, there = NODES[:2]
    refusals = Refusals()
    prober = ProbeCore(ProbeConfig(), here, [there], 7, 0, keys_of(SECRET, "run", here, NODES), refusals)
    peer = ProbeCore(ProbeConfig(), there, [], 8, 0, keys_of(SECRET, "run", there, NODES))

    def probe(since: int) -> None:
        for now_ns in range(since * SECOND, (since + 20) * SECOND, SECOND):
            for sent in prober.wake(now_ns):
                answer = peer.receive(sent.data, here, now_ns)
                assert answer is not None
                prober.receive(answer.data, there, now_ns)

    probe(0)
    for session in range(100, 120):
        peer.receive(tagged(Probe(session, 1, 0, 0, bytes(60)), here, there), here, 20 * SECOND)
    probe(30)
    assert set(prober.estimates(49 * SECOND)) == {there}
    assert refusals.total == 0


def test_a_probe_is_never_answered_with_more_than_was_sent() -> None:
    prober = core()
    short = Probe(2**32 - 1, 1, 2**62, 0)
    assert hear(prober, short, NODES[1], SECOND) is None
    for size in (SINGLE_BYTES, PAIR_BYTES):
        data = tagged(padded(Probe(3, size, 2**62, 0), size), NODES[1])
        answer = prober.receive(data, NODES[1], SECOND)
        assert answer is not None and len(answer.data) <= len(data) == size - HEADERS


def test_whatever_comes_is_survived() -> None:
    prober, rng = core(), random.Random(1)
    good = [encode(Reply(7, 5, 1, 0, 0, 1, 9, 9, 9, 5, (LIE,))), padded(Probe(1, 1, 0, 0), PAIR_BYTES)]
    for turn in range(20_000):
        data = bytearray(good[turn % 2])
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(min(60, len(data)))] = rng.randrange(256)
        sent = tagged(bytes(data[: rng.randrange(len(data) + 1)]), "10.0.0.2")
        answer = prober.receive(sent, "10.0.0.2", 20 * SECOND)
        assert answer is None or len(answer.data) <= len(sent)
    prober.reading(20 * SECOND)
    for deep in (b"\x91" * 100_000, b"\x91" * 1_500):
        with pytest.raises(Refused):
            decode(deep)
