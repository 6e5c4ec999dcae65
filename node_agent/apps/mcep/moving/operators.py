"""The operators of one query that may move, as one broker sees them: hosts, streams, sinks and joints here.

Messages between roles go through ``send``, also those to this broker itself. Nothing is written down: a
broker that is killed is silent, as without migration, and the query stalls.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from node_agent.apps.mcep.channel import ChannelId
from node_agent.apps.mcep.channel import Message as Brought
from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.graph import CONSUMER, Stream
from node_agent.apps.mcep.moving.joints import Between, arrived, begun
from node_agent.apps.mcep.moving.messages import (
    Arrived,
    Handed,
    Happened,
    Hosted,
    JointAt,
    Moves,
    Relocate,
    Role,
    Said,
    Told,
    Wish,
)
from node_agent.apps.mcep.moving.operator import MovingOperator, stream_name
from node_agent.apps.mcep.moving.orders import Orders, Wanted
from node_agent.apps.mcep.moving.places import HOME, Joint, Places, neighbourhoods, sink_name
from node_agent.apps.mcep.moving.planning import Planners, flow
from node_agent.apps.mcep.moving.settings import LIMITS, Migration, state_of
from node_agent.apps.mcep.packed import decode_message, encode_message
from node_agent.apps.mcep.site import Site
from node_agent.apps.mcep.wiring import execution
from node_agent.migration.live.host import Host
from node_agent.migration.live.messages import (
    Ack,
    Chunk,
    Copy,
    Deliver,
    Effect,
    Hail,
    Items,
    Message,
    Note,
    Outputs,
    Sent,
)
from node_agent.migration.live.neighbours import Downstream, Upstream
from node_agent.migration.live.values import Movable, Order, Savepoint, card_of

HOST = Role("host")
MICRO = 1e6
PIECE = 100
"""Bytes that a piece of a joint, or an item of it, takes besides its content."""
AT_HOME = Role("home")


@dataclass
class Copied:
    """``state``, ``input``: bytes sent to new hosts, of immutable state and of buffered input. ``streams``,
    ``copies``: bytes of streams and of copies, each times the latency to the broker, in microseconds."""

    state: int = 0
    input: int = 0
    streams: float = 0.0
    copies: float = 0.0

    def add(self, message: Message, latency: float) -> None:
        match message:
            case Items(items):
                self.streams += sum(len(item.payload) for item in items) * latency * MICRO
            case Outputs(_, payloads):
                self.streams += sum(map(len, payloads)) * latency * MICRO
            case Chunk(_, _, data):
                self.state += len(data)
                self.copies += len(data) * latency * MICRO
            case Copy(_, _, items):
                size = sum(len(item.payload) for item in items)
                self.input += size
                self.copies += size * latency * MICRO


class MovingOperators:
    """``consumed``: gets what comes for the consumer, at the home."""

    def __init__(
        self,
        name: str,
        deployed: Deployed,
        site: Site,
        consumed: Callable[[str, ChannelId, Brought], None],
    ) -> None:
        assert deployed.migration is not None
        self._name, self._deployed, self._site, self._consumed = name, deployed, site, consumed
        self._settings: Migration = deployed.migration
        self._around = neighbourhoods(deployed, site.servers)
        self._places = Places(deployed)
        self._executions: dict[str, MovingOperator] = {}
        """Of each operator that runs here, and of those that ran here before it moved."""
        self._processed = 0
        self.copied = Copied()
        self._acks: dict[tuple[str, str, str], Ack] = {}
        """Acknowledgements that wait for the next tick, by operator, sink and host."""
        self._pieces: dict[Joint, list[Handed]] = {}
        self._held: dict[Joint, int] = {}
        """Bytes of these pieces."""
        self._hosts = {
            operator: Host(site.name, HOME, self._building(operator), LIMITS) for operator in self._around
        }
        self._ups: dict[tuple[str, str], Upstream] = {}
        self._betweens: dict[Joint, Between] = {}
        self._final: dict[str, Downstream] = {}
        self._orders: Orders | None = None
        self._planners: Planners | None = None
        if self._settings.plans:
            room = self._settings.room.get(site.name, math.inf)
            site.rooms.room = min(site.rooms.room, room)
            boxes = dict(site.boxes)
            self._planners = Planners(deployed, site.name, boxes, self._send, site.rooms)
        self._begin()

    def _begin(self) -> None:
        deployed, name = self._deployed, self._site.name
        for operator, around in self._around.items():
            owner = deployed.hosts[operator]
            for stream, channel in around.streams.items():
                if channel.origin == name:
                    self._ups[operator, stream] = Upstream(stream, owner, "", LIMITS)
            if CONSUMER in around.sinks.values() and deployed.home == name:
                self._final[operator] = Downstream(sink_name(CONSUMER), owner, "")
            for joint in self._places.joints(operator):
                if self._places.at(joint) == name:
                    owners = owner, deployed.hosts[joint.successor]
                    self._betweens[joint] = begun(joint, self._stream(joint), _names(joint), owners, LIMITS)
        if deployed.home == name:
            self._orders = Orders(
                self._settings,
                self._around,
                self._places,
                dict(deployed.hosts),
                self._send,
                self._broadcast,
                self._ordered,
                self._ended,
            )
        for operator, around in self._around.items():
            if deployed.hosts[operator] == name:
                state = state_of(operator, self._settings.size(operator))
                host = self._hosts[operator]
                host.state = state
                self._do(operator, HOST, host.own(card_of(state), list(around.streams), list(around.sinks)))

    @property
    def waiting(self) -> int:
        """Messages before operators here; of those that are kept for others, what exceeds their buffers."""
        ups = [*self._ups.values(), *(each.up for each in self._betweens.values())]
        kept = sum(max(0, len(each.kept) - LIMITS.items) for each in ups)
        return kept + sum(each.waiting for each in self._here())

    @property
    def processed(self) -> int:
        return self._processed

    @property
    def planning(self) -> int:
        """Messages sent to agree on plans."""
        return 0 if self._planners is None else self._planners.messages

    @property
    def plans(self) -> int:
        """Plans that operators here have followed."""
        return 0 if self._planners is None else self._planners.plans

    def located(self, place: Point, t: float) -> None:
        """The focal object was there; told at the home."""
        if self._planners is not None:
            self._planners.located(place, t)

    def visited(self, client: str, t: float) -> None:
        """A client came into this broker's area."""
        if self._planners is not None:
            self._planners.visited(client, t)

    @property
    def owned(self) -> tuple[str, ...]:
        """The operators that run here."""
        return tuple(operator for operator, host in self._hosts.items() if host.is_owner)

    @property
    def ended(self) -> bool:
        return all(each.execution.ended for each in self._here())

    def _here(self) -> list[MovingOperator]:
        return [self._executions[each] for each in self.owned if each in self._executions]

    def _building(self, operator: str) -> Callable[[bytes, Savepoint], Movable]:
        def count(processed: int, size: int) -> None:
            self._processed += processed
            if self._planners is not None:
                self._planners.count(operator, size)

        def build(state: bytes, savepoint: Savepoint) -> Movable:
            fresh = execution(self._deployed.query, operator, self._site.servers)
            made = MovingOperator(fresh, savepoint, LIMITS.note, count)
            self._executions[operator] = made
            return made

        return build

    def _stream(self, joint: Joint) -> Stream:
        streams = self._deployed.query.graph.outputs[joint.producer]
        return next(each for each in streams if each.successor == joint.successor)

    def emit(self, successor: str, channel: ChannelId, message: Brought) -> None:
        """What a source on this broker brings for an operator."""
        stream, payload = stream_name(channel), encode_message(message)
        if self._planners is not None:
            self._planners.count(flow(channel.producer, successor), len(payload))
        self._do(successor, Role("stream", stream), self._ups[successor, stream].emit(payload))

    def tick(self) -> None:
        for (operator, sink, owner), ack in self._acks.items():
            self._send(owner, Told(operator, Role("sink", sink), HOST, ack))
        self._acks.clear()
        now = self._site.now()
        for operator, own in self._hosts.items():
            if own.journal.order is not None:
                self._do(operator, HOST, own.tick(now))
        if self._planners is not None:
            self._planners.tick(now)
        if self._orders is not None:
            effects = self._orders.tick(now)
            if effects:
                self._do(self._orders.moving, AT_HOME, effects)

    def receive(self, sender: str, said: Said) -> None:
        """``said`` is what this sender may say (``claims``)."""
        match said:
            case Told(operator, role, receiver, message):
                name = sender if role.kind == "host" else HOME if role.kind == "home" else role.name
                self._told(operator, name, receiver, message)
            case Relocate():
                self._relocate(Joint(said.producer, said.successor), said)
            case Handed():
                self._handed(sender, Joint(said.producer, said.successor), said)
            case Arrived():
                if self._orders is None or not self._orders.arrived(sender, said):
                    self._site.refused += 1
            case JointAt():
                self._joint_at(Joint(said.producer, said.successor), said)
            case Wish(operator, to, begin_at, deadline, why):
                if self._orders is not None:
                    self._orders.wanted[operator] = Wanted(to, why, begin_at, deadline)
            case _:
                if self._planners is not None:
                    self._planners.receive(sender, said, self._site.now())

    def _told(self, operator: str, sender: str, receiver: Role, message: Message) -> None:
        effects: list[Effect]
        match receiver.kind:
            case "host":
                effects = self._hosts[operator].receive(sender, message, self._site.now())
                self._do(operator, receiver, effects)
            case "home" if self._orders is not None:
                effects = self._orders.coordinators[operator].receive(sender, message)
                self._do(operator, receiver, effects)
                self._orders.look(operator)
            case "stream":
                channel = self._around[operator].streams[receiver.name]
                between = self._betweens.get(Joint(channel.producer, operator))
                up = self._ups.get((operator, receiver.name)) or (between.up if between else None)
                if up is not None:  # else the joint has left, and its receiver is told where to
                    self._do(operator, receiver, up.receive(sender, message))
            case "sink":
                self._sink(operator, sender, receiver, message)
            case _:
                self._site.refused += 1

    def _sink(self, operator: str, sender: str, receiver: Role, message: Message) -> None:
        successor = self._around[operator].sinks[receiver.name]
        if operator in self._final and successor == CONSUMER:
            effects = self._final[operator].receive(sender, message)
            for each in effects:
                if isinstance(each, Deliver):
                    for payload in each.payloads:
                        self._deliver(operator, decode_message(payload))
            self._do(operator, receiver, [each for each in effects if not isinstance(each, Deliver)])
        elif (between := self._betweens.get(joint := Joint(operator, successor))) is not None:
            answers, emitted = between.take(between.down.receive(sender, message))
            self._do(operator, receiver, answers)
            self._do(successor, Role("stream", _names(joint)[1]), emitted)

    def _deliver(self, operator: str, message: Brought) -> None:
        for stream in self._deployed.query.graph.outputs[operator]:
            if stream.successor == CONSUMER and stream.carries(message):
                self._consumed(CONSUMER, ChannelId(operator), message)

    def _relocate(self, joint: Joint, said: Relocate) -> None:
        between = self._betweens.get(joint)
        if between is None or said.version != self._places.versions[joint] + 1:
            self._site.refused += 1
            return
        if said.to == self._site.name:  # it is here already, as the operator comes back
            self._send(self._deployed.home, Arrived(*joint, said.version))
            return
        del self._betweens[joint]
        for piece in between.handed(joint, said.version):
            self._send(said.to, piece)

    def _handed(self, sender: str, joint: Joint, said: Handed) -> None:
        if sender != self._places.at(joint) or said.version != self._places.versions[joint] + 1:
            self._site.refused += 1
            return
        size = self._held.get(joint, 0) + sum(PIECE + len(item.payload) for item in said.kept) + PIECE
        if size > LIMITS.bytes:
            self._site.refused += 1
            return
        self._held[joint] = size
        pieces = self._pieces.setdefault(joint, [])
        pieces.append(said)
        if said.last:
            del self._pieces[joint], self._held[joint]
            self._betweens[joint] = arrived(pieces, self._stream(joint), _names(joint), LIMITS)
            self._send(self._deployed.home, Arrived(*joint, said.version))

    def _joint_at(self, joint: Joint, said: JointAt) -> None:
        """The owners of both operators greet it: what was on its way to the old place is lost."""
        self._places.put(joint, said.broker, said.version)
        sink, stream = _names(joint)
        for operator, name in ((joint.producer, sink), (joint.successor, stream)):
            host = self._hosts[operator]
            if host.is_owner and host.work is not None:
                following = host.buffers[name].last + 1 if name in host.buffers else 0
                self._do(operator, HOST, [Sent(name, Hail(host.journal.term, following))])

    def _do(self, operator: str, role: Role, effects: Iterable[Effect]) -> None:
        """Carries out what a machine wants done."""
        for each in effects:
            match each:
                case Sent(to, message):
                    node, receiver = self._receiver(operator, to)
                    if isinstance(message, Ack) and node != self._site.name:
                        self._acks[operator, role.name, node] = message
                        continue
                    if node != self._site.name:
                        self.copied.add(message, self._settings.latency(self._site.name, node))
                    self._send(node, Told(operator, role, receiver, message))
                case Note(what, migration, detail) if role == HOST:
                    self._site.happened(Happened(self._name, operator, what, migration, detail))
                case _:
                    pass  # journals: what a broker keeps is not written down

    def _receiver(self, operator: str, name: str) -> tuple[str, Role]:
        around = self._around[operator]
        if name == HOME:
            return self._deployed.home, AT_HOME
        if (channel := around.streams.get(name)) is not None:
            at = channel.origin or self._places.at(Joint(channel.producer, operator))
            return at, Role("stream", name)
        if (successor := around.sinks.get(name)) is not None:
            return self._places.at(Joint(operator, successor)), Role("sink", name)
        return name, HOST

    def _send(self, to: str, said: Said) -> None:
        self._site.send(to, Moves(self._name, said))

    def _broadcast(self, said: JointAt) -> None:
        for each in self._site.servers:
            self._send(each, said)

    def _ordered(self, operator: str, order: Order, why: str) -> None:
        where = order.source, order.target
        self._site.happened(Happened(self._name, operator, "ordered", order.migration, why, *where))

    def _ended(self, operator: str, order: Order, outcome: str) -> None:
        where = order.source, order.target
        self._site.happened(Happened(self._name, operator, "ended", order.migration, outcome, *where))
        if self._planners is not None and self._orders is not None:
            for node in self._planners.nodes:
                self._send(node, Hosted(operator, self._orders.hosts[operator]))


def _names(joint: Joint) -> tuple[str, str]:
    """Of its sink and of its stream."""
    return sink_name(joint.successor), stream_name(ChannelId(joint.producer))
