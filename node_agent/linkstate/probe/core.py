"""The prober without I/O: whom to probe when, how to answer, and what follows about the network.

Every node with a prober answers the probes of others and, in the answers to pairs, tells what it knows. So a
node that probes those directly downstream of it learns the costs of the whole way to the sinks.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from node_agent.linkstate.probe.estimator import WINDOW, Arrivals, Estimator
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
from node_agent.linkstate.reader import Edge, Edges, Reading

SOURCE = "probe"
_MOST_PEERS = 1024


class ProbeConfig(Struct, frozen=True):
    """``budget``: bytes/s that all probes of a node take, headers included; its replies take no more than the
    probes they answer. Every ``pair_every``-th probe of a target is a pair. Who is silent for ``silence``
    seconds, or for the time of 10 probes if that is longer, has no link.
    """

    budget: float = 4000.0
    pair_every: int = 8
    silence: float = 5.0
    port: int = 7698


class Outgoing(NamedTuple):
    to: str
    data: bytes


class _Sender:
    """A prober as its responder sees it."""

    def __init__(self, session: int) -> None:
        self.session = session
        self.arrivals = Arrivals()
        self.answered = 0
        self.latest = 0
        self.latest_ns = 0


class _Target:
    def __init__(self) -> None:
        self.sent = 0
        self.rounds = 0
        self.responder: int | None = None
        self.estimator = Estimator()

    def answered_by(self, responder: int) -> None:
        """One that has been started anew has forgotten what came before."""
        if responder != self.responder:
            self.responder = responder
            self.estimator = Estimator()


class _Heard(NamedTuple):
    known: Known
    at_ns: int


class ProbeCore:
    def __init__(
        self, config: ProbeConfig, own: str, targets: Sequence[str], session: int, now_ns: int
    ) -> None:
        self._config = config
        self._own = own
        self._session = session
        self._targets = {target: _Target() for target in targets if target != own}
        self._order = list(self._targets)
        self._next = 0
        self._next_ns = now_ns
        self._senders: dict[str, _Sender] = {}
        self._heard: dict[str, _Heard] = {}
        average = (config.pair_every - 1) * SINGLE_BYTES + 2 * PAIR_BYTES
        per_probe = len(self._targets) * average / config.pair_every / config.budget
        self._silence_ns = round(max(config.silence, 10 * per_probe) * 1e9)

    def next_wake_ns(self) -> int | None:
        """None: there is nobody to probe."""
        return self._next_ns if self._order else None

    def wake(self, now_ns: int) -> list[Outgoing]:
        """What is to be sent now. A late call does not make up for what it missed: the budget is a limit."""
        if not self._order or now_ns < self._next_ns:
            return []
        address = self._order[self._next]
        self._next = (self._next + 1) % len(self._order)
        target = self._targets[address]
        target.rounds += 1
        if target.rounds % self._config.pair_every:
            packets = [self._probe(target, 0, SINGLE_BYTES, now_ns)]
        else:
            packets = [self._probe(target, place, PAIR_BYTES, now_ns) for place in (1, 2)]
        size = sum(len(packet) + HEADERS for packet in packets)
        self._next_ns = now_ns + round(size / self._config.budget * 1e9)
        return [Outgoing(address, packet) for packet in packets]

    def receive(self, data: bytes, sender: str, now_ns: int) -> Outgoing | None:
        """The answer, if there is one to give. Never raises for what others send."""
        message = decode(data)
        if isinstance(message, Probe):
            return self._answer(message, len(data), sender, now_ns)
        if isinstance(message, Reply):
            self._learn(message, sender, now_ns)
        return None

    def estimates(self, now_ns: int) -> dict[str, Estimate]:
        """Of the targets that answer; the others have no link."""
        found = (
            (a, t.estimator) for a, t in self._targets.items() if self._recent(t.estimator.heard_ns, now_ns)
        )
        return {address: e for address, each in found if (e := each.estimate(PAIR_BYTES)) is not None}

    def reading(self, now_ns: int) -> Reading:
        """The cost is ETX, 1 / (delivery there × delivery back), of the whole way, in one hop."""
        edges: Edges = {}
        for known in self._all_known(now_ns):
            row = edges.setdefault(known.node, {})
            for address, estimate in known.estimates.items():
                edges.setdefault(address, {})
                both = estimate.delivery_forward * estimate.delivery_backward
                if both > 0:
                    row[address] = Edge(1 / both, both, estimate.latency, hops=None)
        return Reading(edges, "etx", SOURCE)

    def _probe(self, target: _Target, in_pair: int, size: int, now_ns: int) -> bytes:
        target.sent += 1
        return padded(Probe(self._session, target.sent, now_ns, in_pair), size)

    def _answer(self, probe: Probe, size: int, peer: str, now_ns: int) -> Outgoing | None:
        sender = self._senders.get(peer)
        if sender is None or sender.session != probe.session:
            if peer not in self._senders and len(self._senders) >= _MOST_PEERS:
                return None
            sender = self._senders[peer] = _Sender(probe.session)
        paired = probe.in_pair == 2 and sender.latest == probe.number - 1
        gap_ns = now_ns - sender.latest_ns if paired else None
        if not 0 < probe.number < 2**63 or not sender.arrivals.add(probe.number):
            return None
        sender.latest, sender.latest_ns = probe.number, now_ns
        sender.answered += 1
        reply = Reply(
            probe.session,
            self._session,
            probe.number,
            probe.sent_ns,
            probe.in_pair,
            sender.answered,
            sender.arrivals.newest,
            sender.arrivals.counted,
            sender.arrivals.came,
            gap_ns,
        )
        return Outgoing(peer, self._with_known(reply, size, now_ns))

    def _with_known(self, reply: Reply, room: int, now_ns: int) -> bytes:
        """As much of what is known as makes the answer no longer than the question."""
        data = encode(reply)
        if room < PAIR_BYTES - HEADERS:
            return data
        told: tuple[Known, ...] = ()
        for known in self._all_known(now_ns):
            longer = encode(replace(reply, known=(*told, known)))
            if len(longer) <= room:
                told, data = (*told, known), longer
        return data

    def _all_known(self, now_ns: int) -> list[Known]:
        own = Known(self._own, now_ns, self.estimates(now_ns))
        return [own, *(h.known for h in self._heard.values() if self._recent(h.at_ns, now_ns))]

    def _learn(self, reply: Reply, peer: str, now_ns: int) -> None:
        target = self._targets.get(peer)
        round_trip_ns = now_ns - reply.sent_ns
        if target is None or reply.session != self._session or round_trip_ns < 0:
            return
        numbers = (reply.probe, reply.newest, reply.number)
        if not (
            all(0 < each <= target.sent for each in numbers) and 0 <= reply.came <= reply.counted <= WINDOW
        ):
            return
        if not reply.counted or (reply.gap_ns is not None and reply.gap_ns < 0):
            return
        target.answered_by(reply.responder)
        target.estimator.reply(reply, round_trip_ns, now_ns)
        for known in reply.known:
            self._believe(known, now_ns)

    def _believe(self, known: Known, now_ns: int) -> None:
        before = self._heard.get(known.node)
        if known.node == self._own or not all(_possible(e) for e in known.estimates.values()):
            return
        if before is None and len(self._heard) >= _MOST_PEERS:
            return
        if before is None or known.version > before.known.version:
            self._heard[known.node] = _Heard(known, now_ns)

    def _recent(self, at_ns: int | None, now_ns: int) -> bool:
        return at_ns is not None and now_ns - at_ns <= self._silence_ns


def _possible(estimate: Estimate) -> bool:
    shares = (estimate.delivery_forward, estimate.delivery_backward)
    times = [value for value in (estimate.latency, estimate.bandwidth) if value is not None]
    return all(0 <= share <= 1 for share in shares) and all(0 <= value < 1e18 for value in times)
