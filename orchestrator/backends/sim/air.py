"""Makes the medium of a simulation from a topology's radio, and moves nodes in it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from node_agent.model.link_layer import LinkReading
from orchestrator.contacts.plan import ContactPlan
from orchestrator.model.trace import Position
from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.contact_medium import ContactMedium
from orchestrator.radio.dcf_medium import DcfMedium
from orchestrator.radio.disc import DiscRadio
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.medium import Medium, Schedule
from orchestrator.radio.path_loss.base import losses_at
from orchestrator.radio.pipes import named_links, pipe_table
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.station_table import StationTable
from orchestrator.radio.survey import Survey, survey, surveys
from orchestrator.radio.truth import Links, LinkUse
from orchestrator.radio.wires import WIRE_QUEUE, WiredMedium, wired_nodes, wired_plan, with_wires
from orchestrator.services.virtual import RadioOf
from orchestrator.spec import radio as spec
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.topology import Topology

Positions = Mapping[str, Position]
Moment = tuple[Positions, float]
"""Where the nodes are, and for how many seconds they have moved."""

MOST_FORESEEN = 64
"""Nodes. In larger networks each moment is worth a computation of its own, and ten take much memory."""


class Air(Protocol):
    medium: Medium

    def move(self, positions: Positions, seconds: float, changes: AirChanges = UNCHANGED) -> Links:
        """Moves the nodes; returns what links cost from now on, in transmissions.

        ``positions`` are those after ``changes``. ``seconds``: time since they began to move, for losses that
        change by themselves.
        """
        ...

    def foresee(self, moments: Sequence[Moment], changes: AirChanges = UNCHANGED) -> None:
        """Says where nodes will be if ``changes`` stay, so that what follows can be computed together."""
        ...

    def uses(self) -> Iterable[LinkUse]:
        """Returns what was sent over each link since the last call."""
        ...

    def airtimes_ns(self) -> Mapping[str, int]:
        """Returns how long each node has sent so far."""
        ...

    def radio_of(self, node: str) -> RadioOf | None:
        """Returns what the node's radio can tell; None: nothing."""
        ...


def make_air(
    topology: Topology, schedule: Schedule, positions: Positions, seed: int, seconds: float = 0.0
) -> Air:
    """``seconds``: for how long nodes will move, and contacts come and go."""
    radio = _make_radio(topology, schedule, positions, seed, seconds)
    if not topology.wires:
        return radio
    plan = wired_plan(topology.wire_links(), topology.node_names)
    return _Wired(radio, _Contacts(schedule, plan, WIRE_QUEUE), plan, schedule)


def _make_radio(
    topology: Topology, schedule: Schedule, positions: Positions, seed: int, seconds: float
) -> Air:
    section = topology.radio
    if isinstance(section, ContactRadio):
        plan = section.plan(topology.node_names, seed, seconds)
        return _Contacts(schedule, plan, section.queue)
    if isinstance(section, spec.DiscRadio):
        return _Disc(
            DiscRadio(schedule, section.range, round(section.bandwidth), round(section.latency * 1e9))
        )
    choice, mac = air_settings(topology)
    return _Dcf(schedule, positions, choice.radio(), mac, seed)


class _Disc:
    def __init__(self, medium: DiscRadio) -> None:
        self.medium: Medium = medium
        self._disc = medium

    def move(self, positions: Positions, seconds: float, changes: AirChanges = UNCHANGED) -> Links:
        self._disc.move(positions, changes)
        return self._disc.links()

    def foresee(self, moments: Sequence[Moment], changes: AirChanges = UNCHANGED) -> None:
        pass

    def uses(self) -> Iterable[LinkUse]:
        return ()  # every frame in range arrives: nothing to record

    def airtimes_ns(self) -> Mapping[str, int]:
        return self._disc.airtimes_ns()

    def radio_of(self, node: str) -> None:
        return None


class _Contacts:
    def __init__(self, schedule: Schedule, plan: ContactPlan, queue_limit: int) -> None:
        self._medium = ContactMedium(schedule, plan.nodes, queue_limit)
        self.medium: Medium = self._medium
        self._plan = plan
        self._known: tuple[int, AirChanges] | None = None
        self._links: Links = {}
        self._counted = self._counters()

    def move(self, positions: Positions, seconds: float, changes: AirChanges = UNCHANGED) -> Links:
        state = self._plan.step(seconds), changes
        if state != self._known:
            self._known = state
            table = pipe_table(self._plan.up_at(seconds), self._plan.nodes, changes)
            self._links = named_links(table, self._plan.nodes)
            self._medium.use(table)
        return self._links

    def foresee(self, moments: Sequence[Moment], changes: AirChanges = UNCHANGED) -> None:
        pass

    def uses(self) -> Iterable[LinkUse]:
        before, self._counted = self._counted, self._counters()
        names = self._plan.nodes
        for here, (now, then) in enumerate(zip(self._counted, before, strict=True)):
            for there, (attempts, received) in enumerate(now):
                if attempted := attempts - then[there][0]:
                    yield LinkUse(names[here], names[there], attempted, received - then[there][1], 1.0)

    def airtimes_ns(self) -> Mapping[str, int]:
        return {}  # links share no air

    def radio_of(self, node: str) -> None:
        return None

    def readings_of(self, node: str, schedule: Schedule) -> Callable[[], dict[str, LinkReading]]:
        """Returns a function that reads what ``node`` knows of its links; they have no signal."""
        names, stations = self._plan.nodes, self._medium.stations
        own = stations[names.index(node)]
        table, no_signal = StationTable(len(names)), [0.0] * len(names)

        def read() -> dict[str, LinkReading]:
            received = [station.link_received[own.index] for station in stations]
            sent = own.link_acknowledged, own.link_timeouts, own.link_given_up
            found = table.read(received, *sent, no_signal, schedule.now_ns())
            return {names[there]: reading for there, reading in found.items()}

        return read

    def _counters(self) -> list[list[tuple[int, int]]]:
        """Returns how many frames each node has sent to each, and how many of these arrived."""
        stations = self._medium.stations
        return [list(zip(each.link_attempts, each.link_received, strict=True)) for each in stations]


class _Dcf:
    def __init__(self, schedule: Schedule, positions: Positions, radio: Radio, mac: Mac, seed: int) -> None:
        self._radio, self._mac = radio, mac
        self._dcf = DcfMedium(schedule, list(positions), list(positions.values()), radio, mac, seed)
        self.medium: Medium = self._dcf
        self._survey = survey(radio, mac, positions)
        self._foreseen: dict[float, Survey] = {}  # by seconds
        self._counted = self._dcf.link_counters()
        self._sensitivity_dbm = self._dcf.sensitivity_dbm

    def airtimes_ns(self) -> Mapping[str, int]:
        return self._dcf.airtimes_ns()

    def radio_of(self, node: str) -> RadioOf:
        return RadioOf(self._dcf.station_table(node), self._sensitivity_dbm)

    def move(self, positions: Positions, seconds: float, changes: AirChanges = UNCHANGED) -> Links:
        if not self._survey.holds(self._radio, positions, seconds, changes):
            found = self._foreseen.pop(seconds, None)
            if found is None or not found.holds(self._radio, positions, seconds, changes):
                found = survey(self._radio, self._mac, positions, seconds, changes)
            self._survey = found
            self._dcf.use_channel(found.channel)
        return self._survey.links

    def foresee(self, moments: Sequence[Moment], changes: AirChanges = UNCHANGED) -> None:
        if len(self._survey.positions) > MOST_FORESEEN:
            return
        new = [(positions, seconds) for positions, seconds in moments if positions != self._survey.positions]
        losses = [losses_at(self._radio.path_loss, seconds) for _, seconds in new]
        self._foreseen = {}
        if new and all(each is losses[0] for each in losses):
            found = surveys(self._radio, self._mac, [positions for positions, _ in new], losses[0], changes)
            self._foreseen = {seconds: each for (_, seconds), each in zip(new, found, strict=True)}

    def uses(self) -> Iterable[LinkUse]:
        before, self._counted = self._counted, self._dcf.link_counters()
        names = list(self._survey.positions)
        expected, snr_db = self._survey.expected, self._survey.channel.snr_db
        for here, (now, then) in enumerate(zip(self._counted, before, strict=True)):
            if now.attempts == then.attempts:
                continue
            for there, attempts in enumerate(now.attempts):
                if attempted := attempts - then.attempts[there]:
                    delivered = now.received[there] - then.received[there]
                    expectation = float(expected[here, there]), float(snr_db[here, there])
                    yield LinkUse(names[here], names[there], attempted, delivered, *expectation)


class _Wired:
    """The air with cables beside it: what is between two nodes with a cable is the cable's."""

    def __init__(self, radio: Air, wires: _Contacts, plan: ContactPlan, schedule: Schedule) -> None:
        self._radio, self._wires, self._nodes, self._schedule = radio, wires, plan.nodes, schedule
        self._wired = wired_nodes(plan.links)
        self.medium: Medium = WiredMedium(radio.medium, wires.medium, self._wired)
        self._joined: tuple[Links, Links] | None = None
        self._links: Links = {}

    def move(self, positions: Positions, seconds: float, changes: AirChanges = UNCHANGED) -> Links:
        parts = self._radio.move(positions, seconds, changes), self._wires.move(positions, 0.0, changes)
        if self._joined is None or any(new is not old for new, old in zip(parts, self._joined, strict=True)):
            self._joined, self._links = parts, with_wires(*parts, self._wired)
        return self._links

    def foresee(self, moments: Sequence[Moment], changes: AirChanges = UNCHANGED) -> None:
        self._radio.foresee(moments, changes)

    def uses(self) -> Iterable[LinkUse]:
        for use in self._radio.uses():
            if use.destination not in self._wired.get(use.source, ()):
                yield use
        yield from self._wires.uses()

    def airtimes_ns(self) -> Mapping[str, int]:
        return self._radio.airtimes_ns()

    def radio_of(self, node: str) -> RadioOf | None:
        radio, wired = self._radio.radio_of(node), self._wired.get(node)
        if radio is None or wired is None:
            return radio
        by_wire = self._wires.readings_of(node, self._schedule)

        def read() -> dict[str, LinkReading]:
            return {peer: each for peer, each in radio.read().items() if peer not in wired} | by_wire()

        return RadioOf(read, radio.sensitivity_dbm)
