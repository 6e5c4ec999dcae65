"""The detection of events on one node: feeds the state machine from sources, neighbours and the clock."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from node_agent.apps.base import AppKind, AppStatus, AppUnusable, Surroundings
from node_agent.apps.comet.journal import Unreadable, opened
from node_agent.apps.comet.machine import Arrived
from node_agent.apps.comet.messages import (
    Acknowledged,
    Entry,
    Heard,
    Marks,
    Occurred,
    Opened,
    Passed,
    Received,
    Told,
)
from node_agent.apps.comet.metrics import METRIC_KINDS
from node_agent.apps.comet.model import DetectConfig, nodes_of, problems
from node_agent.apps.comet.neighbour import Neighbour, Sender
from node_agent.apps.comet.node_plan import MOMENT
from node_agent.apps.comet.sources import Sources, opening
from node_agent.apps.comet.telemetry import (
    NODE,
    RECORDS,
    EventArrived,
    EventAsked,
    EventContact,
    EventDetected,
    EventDropped,
    EventLink,
    EventOccurred,
    EventStore,
    link,
    sink,
    source,
)
from node_agent.apps.comet.wire import CODEC, Have, Items, NeighbourAdmission
from node_agent.apps.tasks import Tasks
from node_agent.linkstate.overhead import OverheadSource
from node_agent.transport.authentication import Digests
from node_agent.transport.messages import Pair
from node_agent.transport.server import ConnectionServer

NS = 1_000_000_000


class Detect:
    """An ``Application``. Times are seconds of the node's clock."""

    def __init__(self, config: DetectConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self._tasks = Tasks(around.fail)
        place = around.directory or around.scratch
        try:
            place.mkdir(parents=True, exist_ok=True)
            self._machine, self._journal = opened(place / f"{around.app}.journal", config.plan)
        except (OSError, Unreadable) as error:
            raise AppUnusable(f"the journal of {around.app} cannot be used: {error}") from error
        self._sources: Sources | None = None
        self._is_due = asyncio.Event()
        self._digests = Digests()
        self._neighbours = {
            name: Neighbour(self._machine, name, self._told_until, self._acknowledged, self._met)
            for name in config.plan.neighbours
        }
        self._met_ns: dict[str, int] = {}
        """By neighbour, since when there is a connection, or none."""
        self._connections: list[Sender] = []
        self._server = ConnectionServer[Items, Have](
            around.port,
            around.credentials,
            CODEC,
            NeighbourAdmission(config.plan),
            {node: at.host for node, at in around.addresses.items() if node != around.node},
            around.links,
            self._digests,
            around.refusals,
            self._receive,
            partial(around.fail, "connection of a neighbour"),
        )
        self._started = self._stopped = False

    async def start(self) -> None:
        around = self._around
        await self._server.open(around.addresses[around.node].port)
        self._started = True
        self._met_ns = dict.fromkeys(self._neighbours, around.port.now_ns())
        self._report()
        for name, neighbour in self._neighbours.items():
            connection = Sender(
                around.port,
                around.addresses[name],
                around.credentials.to(name, "connection"),
                Pair(around.node, name),
                CODEC,
                around.links,
                self._digests,
                around.refusals,
                partial(around.fail, f"connection to {name}"),
                neighbour.said,
                neighbour.lost,
            )
            self._connections.append(connection)
            self._tasks.spawn(f"link to {name}", neighbour.run(connection))
        self._tasks.spawn("clock", self._watch_clock())

    def open(self) -> None:
        if self._sources is not None or not self._started:
            return
        self._apply(Opened(opening(self._now())))
        state = self._machine.state
        assert state.opened is not None
        self._sources = Sources(self._config.events, state.opened, state.occurred)
        self._is_due.set()

    async def stop(self) -> None:
        self._tasks.cancel()
        for connection in self._connections:
            await connection.close()
        await self._server.close()
        await self._tasks.wait()
        if not self._stopped:
            self._journal.close()
        self._stopped = True

    def sample(self) -> None:
        state, record = self._machine.state, self._around.record
        for name, neighbour in self._neighbours.items():
            outbox, sent = state.outboxes[name], neighbour.sent
            counts = (sent.instances, sent.references, sent.requests, sent.marks, sent.bytes)
            waiting = (len(outbox.waiting), outbox.size)
            record(EventLink(link(name), name, *counts, sent.connections, *waiting))
        kept = sum(len(each.known) for each in state.junctions.values())
        kept += sum(len(each.seen) for each in state.watches.values())
        matches = sum(len(each.matches) for each in state.outlets.values())
        undecided = sum(len(each.candidates) for each in state.watches.values())
        record(EventStore(NODE, kept, matches, undecided))

    def status(self) -> AppStatus:
        parts = tuple(source(each.name) for each in self._config.events)
        return AppStatus(True, parts)

    def overheads(self) -> Sequence[OverheadSource]:
        return ()

    def _now(self) -> float:
        return self._around.port.now_ns() / NS

    def _told_until(self) -> float:
        """Feeds what has occurred by now."""
        now = self._now()
        due = [] if self._sources is None else list(self._sources.due(now))
        for instance in due:
            start_ns, end_ns = round(instance.start * NS), round(instance.end * NS)
            where = source(instance.event)
            self._around.record(EventOccurred(where, instance.event, instance.number, start_ns, end_ns))
        if due:
            self._around.flush()  # the journal says that it occurred: a node that is killed must have told it
        for instance in due:
            self._apply(Occurred(instance))
        return now

    def _apply(self, entry: Entry) -> None:
        """Writes an entry down, and lets it have its effects."""
        if self._stopped:
            return
        self._journal.write(entry)
        self._machine.apply(entry)
        self._report()
        self._journal.tidy(self._machine)
        for neighbour in self._neighbours.values():
            neighbour.wake()
        self._is_due.set()

    def _report(self) -> None:
        machine, record = self._machine, self._around.record
        for seen in machine.observed:
            if isinstance(seen, Arrived):
                record(EventArrived(NODE, seen.request, seen.instance.event, seen.instance.number))
            else:
                low = min(low for low, _ in seen.bounds.values())
                high = max(high for _, high in seen.bounds.values())
                moments = max(0, round(low * NS)), max(0, round(high * NS))
                record(EventAsked(NODE, seen.request, tuple(sorted(seen.bounds)), *moments))
        machine.observed.clear()
        for lost in machine.dropped:
            record(EventDropped(NODE, lost.what, lost.where, lost.event, lost.number))
        machine.dropped.clear()
        for found in machine.state.untold:
            each = found.detection
            names = tuple(f"{one.event}#{one.number}" for one in each.constituents)
            span = round(each.start * NS), round(each.end * NS)
            record(EventDetected(sink(found.request), found.request, found.number, *span, names))
        if machine.state.untold:
            self._around.flush()  # what the journal has as told is not told again
            told = Told(self._now(), machine.state.untold[-1].number)
            self._journal.write(told)
            machine.apply(told)

    def _acknowledged(self, neighbour: str, number: int) -> None:
        if number > self._machine.state.outboxes[neighbour].acknowledged:
            self._apply(Acknowledged(self._told_until(), neighbour, number))

    def _met(self, neighbour: str, up: bool) -> None:
        """Reports how long there was no connection, or one."""
        now_ns = self._around.port.now_ns()
        lasted_ns, self._met_ns[neighbour] = max(0, now_ns - self._met_ns[neighbour]), now_ns
        self._around.record(EventContact(link(neighbour), neighbour, up, lasted_ns))

    async def _receive(self, pair: Pair, batch: Items) -> None:
        """Takes what a neighbour sent, in order, and says what is here."""
        neighbour, again = pair.sender, False
        for item in batch.items:
            if item.previous > self._machine.state.taken[neighbour]:
                again = True
                break
            now = self._told_until()
            if isinstance(item.message, Marks):
                self._apply(Heard(now, neighbour, item.message))
            elif item.number > self._machine.state.taken[neighbour]:
                self._apply(Received(now, neighbour, item.number, item.message))
        self._server.send_message(pair, Have(self._machine.state.taken[neighbour], again))

    async def _watch_clock(self) -> None:
        """Feeds what occurs here, and decides what waits for this node's own events."""
        while True:
            self._is_due.clear()
            now = self._told_until()
            conclusion = self._machine.next_conclusion()
            if conclusion is not None and conclusion + MOMENT <= now:
                self._apply(Passed(now))
                continue
            moments = [] if conclusion is None else [conclusion + MOMENT]
            following = None if self._sources is None else self._sources.next_end()
            moments += [] if following is None else [following]
            wait = None if not moments else max(min(moments) - now, 0.0) + 1e-6
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._is_due.wait()


DETECT = AppKind(DetectConfig, Detect, RECORDS, nodes_of, problems, metrics=METRIC_KINDS)
