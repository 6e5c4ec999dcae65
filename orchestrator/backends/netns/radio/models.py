"""What the radio process can model: 802.11b's shared channel, and contacts.

The helper looks ahead with ``look`` and packs what it sees; the loop runs ``medium`` and applies the packed
updates to it.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.backends.netns.radio.config import RadioConfig
from orchestrator.backends.netns.radio.driven import Driven, DrivenDcf, DrivenPipes, packed_channel
from orchestrator.backends.netns.radio.wired import DrivenWired, packed_both
from orchestrator.contacts.plan import ContactLink, ContactPlan
from orchestrator.model.trace import Position
from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.exchanges import Deliver, Pull
from orchestrator.radio.pipes import PipeTable, named_links, packed_table, pipe_table
from orchestrator.radio.survey import Links, sensitivity_dbm, survey
from orchestrator.radio.survey import Survey as ChannelSurvey
from orchestrator.radio.wires import wired_nodes, with_wires

Positions = Mapping[str, Position]


class Seen(Protocol):
    """The true network at one tick."""

    @property
    def positions(self) -> Positions: ...

    @property
    def links(self) -> Links: ...

    @property
    def changes(self) -> AirChanges: ...

    def packed(self) -> bytes:
        """Returns what the loop must know of it."""
        ...

    def expectation(self, here: int, there: int) -> tuple[float, float | None]:
        """Returns the share of full frames that arrive, and the SNR in dB; None: there is no noise."""
        ...


class AirModel(Protocol):
    def look(self, positions: Positions, t: float, changes: AirChanges = UNCHANGED) -> Seen:
        """Returns the network at ``t`` seconds after movement began; the same object as before if nothing has
        changed.
        """
        ...

    def medium(self, first: Seen, rng: random.Random, pull: Pull, deliver: Deliver) -> Driven: ...

    def sensitivity_dbm(self) -> float: ...

    def power_mw(self, seen: Seen) -> list[list[float]]:
        """Returns received powers for the nodes' station tables, by transmitter and receiver."""
        ...


def air_model(config: RadioConfig) -> AirModel:
    if config.contacts is not None:
        return ContactAir(config.contacts, config.mac.queue_limit)
    radio = ChannelAir(config)
    return WiredAir(radio, config.wires, config.mac.queue_limit) if config.wires else radio


class SeenChannel:
    def __init__(self, found: ChannelSurvey) -> None:
        self.survey = found
        self.positions: Positions = found.positions
        self.links = found.links
        self.changes = found.changes

    def packed(self) -> bytes:
        return packed_channel(self.survey.channel)

    def expectation(self, here: int, there: int) -> tuple[float, float | None]:
        return float(self.survey.expected[here, there]), float(self.survey.channel.snr_db[here, there])


class ChannelAir:
    def __init__(self, config: RadioConfig) -> None:
        self._radio, self._mac = config.radio.radio(), config.mac
        self._latest: SeenChannel | None = None

    def look(self, positions: Positions, t: float, changes: AirChanges = UNCHANGED) -> SeenChannel:
        latest = self._latest
        if latest is None or not latest.survey.holds(self._radio, positions, t, changes):
            latest = SeenChannel(survey(self._radio, self._mac, positions, t, changes))
            self._latest = latest
        return latest

    def medium(self, first: Seen, rng: random.Random, pull: Pull, deliver: Deliver) -> Driven:
        assert isinstance(first, SeenChannel)
        return DrivenDcf(first.survey.channel, self._mac, rng, pull, deliver)

    def sensitivity_dbm(self) -> float:
        return sensitivity_dbm(self._radio, self._mac)

    def power_mw(self, seen: Seen) -> list[list[float]]:
        assert isinstance(seen, SeenChannel)
        return seen.survey.channel.power_mw


class SeenContacts:
    def __init__(self, step: int, positions: Positions, table: PipeTable, changes: AirChanges) -> None:
        self.step = step
        self.positions = positions
        self.table = table
        self.links = named_links(table, list(positions))
        self.changes = changes

    def packed(self) -> bytes:
        return packed_table(self.table)

    def expectation(self, here: int, there: int) -> tuple[float, float | None]:
        return 1.0, None


class ContactAir:
    def __init__(self, plan: ContactPlan, queue_limit: int) -> None:
        self._plan, self._queue_limit = plan, queue_limit
        self._latest: SeenContacts | None = None

    def look(self, positions: Positions, t: float, changes: AirChanges = UNCHANGED) -> SeenContacts:
        latest, step = self._latest, self._plan.step(t)
        if latest is None or (step, positions, changes) != (latest.step, latest.positions, latest.changes):
            table = pipe_table(self._plan.up_at(t), list(positions), changes)
            self._latest = latest = SeenContacts(step, positions, table, changes)
        return latest

    def medium(self, first: Seen, rng: random.Random, pull: Pull, deliver: Deliver) -> Driven:
        assert isinstance(first, SeenContacts)
        return DrivenPipes(first.table, self._queue_limit, pull, deliver)

    def sensitivity_dbm(self) -> float:
        raise NotImplementedError("contacts have no signal")

    def power_mw(self, seen: Seen) -> list[list[float]]:
        raise NotImplementedError("contacts have no signal")


class SeenWired:
    """The channel, and the cables that are not cut. ``ends``: by node, whom its cables lead to."""

    def __init__(self, radio: SeenChannel, table: PipeTable, ends: Sequence[frozenset[int]]) -> None:
        self.radio, self.table = radio, table
        self.positions, self.changes = radio.positions, radio.changes
        self._ends = ends
        names = list(radio.positions)
        wired = {name: frozenset(names[end] for end in ends[here]) for here, name in enumerate(names)}
        self.links = with_wires(radio.links, named_links(table, names), wired)

    def packed(self) -> bytes:
        return packed_both(self.radio.packed(), packed_table(self.table))

    def expectation(self, here: int, there: int) -> tuple[float, float | None]:
        return (1.0, None) if there in self._ends[here] else self.radio.expectation(here, there)


class WiredAir:
    def __init__(self, radio: ChannelAir, wires: Sequence[ContactLink], queue_limit: int) -> None:
        self._radio, self._wires, self._queue_limit = radio, wires, queue_limit
        self._latest: SeenWired | None = None

    def look(self, positions: Positions, t: float, changes: AirChanges = UNCHANGED) -> SeenWired:
        radio, latest = self._radio.look(positions, t, changes), self._latest
        if latest is None or latest.radio is not radio:
            names = list(positions)
            table = pipe_table(self._wires, names, changes)
            self._latest = latest = SeenWired(radio, table, self._ends(names))
        return latest

    def medium(self, first: Seen, rng: random.Random, pull: Pull, deliver: Deliver) -> Driven:
        assert isinstance(first, SeenWired)
        ends = self._ends(list(first.positions))

        def radio(pull: Pull, deliver: Deliver) -> DrivenDcf:
            medium = self._radio.medium(first.radio, rng, pull, deliver)
            assert isinstance(medium, DrivenDcf)
            return medium

        return DrivenWired(radio, first.table, ends, self._queue_limit, pull, deliver)

    def sensitivity_dbm(self) -> float:
        return self._radio.sensitivity_dbm()

    def power_mw(self, seen: Seen) -> list[list[float]]:
        """Returns the radio's powers; nothing arrives by radio where there is a cable."""
        assert isinstance(seen, SeenWired)
        rows = [list(row) for row in self._radio.power_mw(seen.radio)]
        for here, ends in enumerate(self._ends(list(seen.positions))):
            for there in ends:
                rows[here][there] = 0.0
        return rows

    def _ends(self, names: Sequence[str]) -> list[frozenset[int]]:
        wired = wired_nodes(self._wires)
        return [frozenset(names.index(end) for end in wired.get(name, ())) for name in names]
