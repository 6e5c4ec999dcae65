"""Who may say what while an operator moves. Pure.

Whoever carries messages proves that the sender is who it says; this says whether the sender may say that to
the receiver. Whether it fits the state of the migration, machines see for themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from node_agent.migration.live.messages import (
    Ack,
    Appoint,
    Appointed,
    Begins,
    Chunk,
    Copy,
    Expect,
    Expecting,
    Fetch,
    Finished,
    Hail,
    Here,
    Items,
    Kept,
    Message,
    Migrate,
    Moved,
    Offer,
    Outputs,
    Ready,
    Refused,
    Release,
    Released,
    Standpoint,
    Start,
    StateKept,
    StopTo,
    StreamsTo,
    StreamTo,
    Succeed,
    Superseded,
    Trim,
    Welcome,
)
from node_agent.migration.live.values import Order


@dataclass(frozen=True, slots=True)
class Parties:
    """Who takes part in migrations of one operator. ``hosts``: where it may be."""

    coordinator: str
    hosts: frozenset[str]
    streams: frozenset[str]
    sinks: frozenset[str]

    @property
    def neighbours(self) -> frozenset[str]:
        return self.streams | self.sinks


def refusal(parties: Parties, sender: str, receiver: str, message: Message) -> str | None:
    """Returns one word that says why it cannot be; None if it can."""
    if sender == receiver:
        return "sender"
    senders, receivers = _roles(parties, message)
    if sender not in senders:
        return "sender"
    if receiver not in receivers:
        return "receiver"
    return _mistold(parties, receiver, message)


def _roles(parties: Parties, message: Message) -> tuple[Iterable[str], Iterable[str]]:
    coordinator = frozenset({parties.coordinator})
    hosts, streams, sinks = parties.hosts, parties.streams, parties.sinks
    match message:
        case Expect() | Migrate():
            return coordinator, hosts
        case Appoint():
            return coordinator, hosts | parties.neighbours
        case Expecting() | Finished() | Appointed():
            return hosts, coordinator
        case Here() | Refused() | Fetch():
            return hosts, hosts | coordinator
        case Chunk():
            return hosts | coordinator, hosts
        case (
            Offer()
            | StateKept()
            | Copy()
            | Standpoint()
            | Kept()
            | Ready()
            | Start()
            | Release()
            | Released()
        ):
            return hosts, hosts
        case StreamTo() | StopTo() | Trim():
            return hosts, streams
        case Hail() | Succeed():
            return hosts, parties.neighbours
        case Outputs():
            return hosts, sinks
        case StreamsTo() | Begins() | Items() | Moved():
            return streams, hosts
        case Welcome() | Ack():
            return sinks, hosts
        case Superseded():
            return parties.neighbours, hosts


def _mistold(parties: Parties, receiver: str, message: Message) -> str | None:
    match message:
        case Expect(order):
            return _misorders(parties, order) or (None if order.target == receiver else "order")
        case Migrate(order):
            return _misorders(parties, order) or (None if order.source == receiver else "order")
        case Appoint(_, host) | StreamTo(host) | StopTo(host) | Succeed(_, host) | StreamsTo(host):
            return None if host in parties.hosts else "host"
        case Superseded(_, host):
            return None if host in parties.hosts else "host"
        case Offer(_, savepoint) | Standpoint(_, savepoint) | Kept(_, savepoint) | Start(_, savepoint):
            return None if {name for name, _ in savepoint.inputs} <= parties.streams else "stream"
        case Copy(_, stream):
            return None if stream in parties.streams else "stream"
        case _:
            return None


def _misorders(parties: Parties, order: Order) -> str | None:
    right = {order.source, order.target} <= parties.hosts and order.source != order.target
    beside = set(order.streams) == parties.streams and set(order.sinks) == parties.sinks
    once = len(order.neighbours) == len(set(order.neighbours))
    return None if right and beside and once else "order"
