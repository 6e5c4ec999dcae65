"""The prober without I/O: when to probe which node, how to answer, and what follows about the network.

Every node with a prober answers the probes of others, and reports what it knows in the answers to pairs. So a
node that probes its direct downstream nodes learns the costs of the whole way to the sinks.

Only packets of nodes of the run are accepted, each with the key that it shares with this one. What a node
reports about itself counts before what others report about it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from node_agent.linkstate.probe.estimator import WINDOW, Estimator
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
from node_agent.linkstate.probe.responder import Responder
from node_agent.linkstate.probe.tags import SIZE as TAG_SIZE
from node_agent.linkstate.probe.tags import Tags
from node_agent.linkstate.reader import Edge, Edges, Reading
from node_agent.model.checked import Refused
from node_agent.model.refusals import Refusals

SOURCE = "probe"
_LEAST_DELIVERY = 1e-6
"""Of both directions. Less cannot be measured, and its ETX would be infinite."""
_NEWER_NS = 250_000_000
"""A report about another node is new only if it is younger by this: on its way every report seems to get
younger by its travel time.
"""


class ProbeConfig(Struct, frozen=True):
    """``budget``: bytes/s for all probes of a node, with headers; its replies take no more than the probes
    that they answer. Every ``pair_every``-th probe of a target is a pair. A node that is silent for
    ``silence`` seconds, or for the time of 10 probes if that is longer, has no link.
    """

    budget: float = 4000.0
    pair_every: int = 8
    silence: float = 5.0
    port: int = 7698


class Outgoing(NamedTuple):
    to: str
    data: bytes


class _Target:
    def __init__(self) -> None:
        self.sent = 0
        self.rounds = 0
        self.responder: int | None = None
        self.answered = 0
        """The number of the latest probe that was answered."""
        self.estimator = Estimator()

    def learn(self, reply: Reply, round_trip_ns: int, now_ns: int) -> bool:
        """Returns whether the reply is new. A restarted responder answers a later probe than any before its
        restart, so a repeated old reply does not replace the present one.
        """
        if reply.responder != self.responder:
            if reply.probe <= self.answered:
                return False
            self.responder = reply.responder
            self.estimator = Estimator()  # a restarted responder has forgotten its counts
        self.answered = max(self.answered, reply.probe)
        return self.estimator.reply(reply, round_trip_ns, now_ns)


class _Received(NamedTuple):
    """``taken_ns``: when it was measured, by this node's clock. ``of_itself``: the node itself reported
    it.
    """

    estimates: Mapping[str, Estimate]
    taken_ns: int
    at_ns: int
    of_itself: bool


class ProbeCore:
    """``keys``: by address, those that this node shares with the others of the run. Packets of others are
    refused. ``now_ns``, here and in all calls, is of a clock that nobody sets.
    """

    def __init__(
        self,
        config: ProbeConfig,
        own: str,
        targets: Sequence[str],
        session: int,
        now_ns: int,
        keys: Mapping[str, bytes],
        refusals: Refusals | None = None,
    ) -> None:
        self._config = config
        self._own = own
        self._session = session
        self._tags = Tags(own, keys)
        self._refusals = refusals or Refusals()
        self._targets = {target: _Target() for target in targets if target != own and target in self._tags}
        self._order = list(self._targets)
        self._next = 0
        self._next_ns = now_ns
        self._responder = Responder(session)
        self._received: dict[str, _Received] = {}
        average = (config.pair_every - 1) * SINGLE_BYTES + 2 * PAIR_BYTES
        per_probe = len(self._targets) * average / config.pair_every / config.budget
        self._silence_ns = round(max(config.silence, 10 * per_probe) * 1e9)

    def next_wake_ns(self) -> int | None:
        """Returns when to call ``wake``; None if there is no node to probe."""
        return self._next_ns if self._order else None

    def wake(self, now_ns: int) -> list[Outgoing]:
        """Returns what to send now. A late call does not make up for missed ones: the budget is a limit."""
        if not self._order or now_ns < self._next_ns:
            return []
        address = self._order[self._next]
        self._next = (self._next + 1) % len(self._order)
        target = self._targets[address]
        target.rounds += 1
        if target.rounds % self._config.pair_every:
            probes = [self._probe(target, 0, SINGLE_BYTES, now_ns)]
        else:
            probes = [self._probe(target, place, PAIR_BYTES, now_ns) for place in (1, 2)]
        packets = [self._tags.add(probe, address) for probe in probes]
        size = sum(len(packet) + HEADERS for packet in packets)
        self._next_ns = now_ns + round(size / self._config.budget * 1e9)
        return [Outgoing(address, packet) for packet in packets]

    def receive(self, data: bytes, sender: str, now_ns: int) -> Outgoing | None:
        """Returns the answer to a packet, if there is one. Never raises for what others send: it is refused
        and counted as ``not_member``, ``unauthenticated``, ``malformed``, ``replay`` or ``impossible``.
        """
        message = self._read(data, sender)
        if message is None:
            return None
        if isinstance(message, Probe):
            return self._answer(message, len(data), sender, now_ns)
        self._learn(message, sender, now_ns)
        return None

    def _read(self, data: bytes, sender: str) -> Probe | Reply | None:
        if sender not in self._tags:
            self._refuse(sender, "not_member")
            return None
        content = self._tags.checked(data, sender)
        if content is None:
            self._refuse(sender, "unauthenticated")
            return None
        try:
            return decode(content)
        except Refused as error:
            self._refuse(sender, error.reason)
            return None

    def estimates(self, now_ns: int) -> dict[str, Estimate]:
        """Returns the estimates for targets that answer; the others have no link."""
        found = (
            (a, t.estimator) for a, t in self._targets.items() if self._recent(t.estimator.heard_ns, now_ns)
        )
        return {address: e for address, each in found if (e := each.estimate(PAIR_BYTES)) is not None}

    def reading(self, now_ns: int) -> Reading:
        """Returns the reading. The cost is ETX, 1 / (delivery there × delivery back), of the whole path as
        one hop.
        """
        edges: Edges = {}
        for known in self._all_known(now_ns):
            row = edges.setdefault(known.node, {})
            for address, estimate in known.estimates.items():
                edges.setdefault(address, {})
                both = estimate.delivery_forward * estimate.delivery_backward
                if both > _LEAST_DELIVERY:
                    row[address] = Edge(1 / both, both, estimate.latency, hops=None)
        return Reading(edges, "etx", SOURCE)

    def _probe(self, target: _Target, in_pair: int, size: int, now_ns: int) -> bytes:
        target.sent += 1
        return padded(Probe(self._session, target.sent, now_ns, in_pair), size)

    def _answer(self, probe: Probe, size: int, peer: str, now_ns: int) -> Outgoing | None:
        reply = self._responder.reply(probe, peer, now_ns)
        if reply is None:
            self._refuse(peer, "replay")
            return None
        answer = self._with_known(reply, size - TAG_SIZE, now_ns)
        return Outgoing(peer, self._tags.add(answer, peer)) if answer is not None else None

    def _with_known(self, reply: Reply, room: int, now_ns: int) -> bytes | None:
        """Adds as much of what is known as keeps the answer no longer than the question. Returns None if the
        answer is longer even without.
        """
        data = encode(reply)
        if len(data) > room:
            return None
        if room < PAIR_BYTES - HEADERS - TAG_SIZE:
            return data
        announced: tuple[Known, ...] = ()
        for known in self._all_known(now_ns):
            longer = encode(replace(reply, known=(*announced, known)))
            if len(longer) <= room:
                announced, data = (*announced, known), longer
        return data

    def _all_known(self, now_ns: int) -> list[Known]:
        own = Known(self._own, 0, self.estimates(now_ns))
        return [
            own,
            *(
                Known(node, max(0, now_ns - received.taken_ns), dict(received.estimates))
                for node, received in self._received.items()
                if self._recent(received.at_ns, now_ns)
            ),
        ]

    def _learn(self, reply: Reply, peer: str, now_ns: int) -> None:
        target = self._targets.get(peer)
        round_trip_ns = now_ns - reply.sent_ns
        if target is None or reply.session != self._session or round_trip_ns < 0:
            self._refuse(peer, "replay")
            return
        numbers = (reply.probe, reply.newest, reply.number)
        counted = 0 <= reply.came <= reply.counted <= WINDOW and reply.counted
        if not (all(0 < each <= target.sent for each in numbers) and counted):
            self._refuse(peer, "impossible")
            return
        if not target.learn(reply, round_trip_ns, now_ns):
            self._refuse(peer, "replay")
            return
        for known in reply.known:
            self._believe(known, peer, now_ns)

    def _believe(self, known: Known, reporter: str, now_ns: int) -> None:
        """Takes over a report, if it comes from a node of the run and is about nodes of the run."""
        if known.node == self._own or known.node not in self._tags:
            return
        before = self._received.get(known.node)
        of_itself = known.node == reporter
        taken_ns = now_ns - known.age_ns
        if before is not None and not of_itself:
            itself = before.of_itself and self._recent(before.at_ns, now_ns)
            if itself or taken_ns <= before.taken_ns + _NEWER_NS:
                return
        estimates = {
            address: estimate
            for address, estimate in known.estimates.items()
            if address == self._own or address in self._tags
        }
        self._received[known.node] = _Received(estimates, taken_ns, now_ns, of_itself)

    def _refuse(self, sender: str, reason: str) -> None:
        self._refusals.add("probe", sender, reason)

    def _recent(self, at_ns: int | None, now_ns: int) -> bool:
        return at_ns is not None and now_ns - at_ns <= self._silence_ns
