"""The radio model ``contacts``: links that are up and down by a schedule, each with a rate of its own.

There is no shared channel and no distance: a link is a pipe between two nodes while it is up. Time 0 is when
nodes begin to move, that is when the sources open; until then links are as they are at time 0.

    radio:
      model: contacts
      rate: 256 kb/s
      links:
        - {between: [bus, base], periodic: {up: 60s, down: 300s, phase: 20s}, rate: 1.2 Mb/s}
        - {between: [field, bus], random: {up: 30s, down: 150s}}
"""

from itertools import pairwise
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from orchestrator.contacts import schedules
from orchestrator.contacts.plan import (
    FOREVER,
    TICK_S,
    Contact,
    ContactLink,
    ContactPlan,
    Periods,
    measured,
    on_ticks,
)
from orchestrator.contacts.traces import MOST_CONTACTS
from orchestrator.errors import BadInput
from orchestrator.spec.base import Name, Section
from orchestrator.spec.contact_trace import ContactTraceSection
from orchestrator.spec.node_pairs import Ends
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.units import BIT_RATE, DURATION

MODEL_CONTACTS = "contacts"
_MBPS = 1e6
_PERIOD = DURATION.within(ge=TICK_S)
Period = Annotated[float, _PERIOD]
LinkRate = Annotated[float, BIT_RATE.within(ge=100, le=10e9)]
LinkLatency = Annotated[float, DURATION.within(le=3600)]
CostFactor = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
_ONE_OF = ("periodic", "random", "times", "always")


class Periodic(Section):
    """Up for ``up``, down for ``down``, and so on; one contact begins at ``phase``."""

    up: Period = Field(examples=["60s"])
    down: Period = Field(examples=["300s"])
    phase: Annotated[float, DURATION] = Field(default=0.0, examples=["20s"])

    @model_validator(mode="after")
    def _makes_sense(self) -> "Periodic":
        period = self.up + self.down
        if self.phase >= period:
            text = f"{self.phase:g} s: contacts repeat every {period:g} s, so it must be less"
            raise unusable(text, f"for example {self.phase % period:g} s, which is the same", at=("phase",))
        return self


class RandomContacts(Section):
    """Exponentially distributed lengths with these means, drawn by the experiment's seed."""

    other_names: ClassVar[dict[str, str]] = {"eap": "up", "edp": "down"}

    up: Period = Field(description="Expected active period (EAP)", examples=["60s"])
    down: Period = Field(description="Expected disconnection period (EDP)", examples=["300s"])


def _read_times(value: Any) -> tuple[Contact, ...] | None:
    if value is None:
        return None
    hint = "write it like times: [[20s, 80s], [380s, 440s]]"
    if not isinstance(value, list | tuple) or not value:
        raise unusable(f"{shown(value)} is not a list of contacts", hint)
    findings: list[Finding] = []
    read: list[tuple[int, Contact]] = []
    for index, entry in enumerate(value):
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            findings.append(Finding((index,), f"{shown(entry)} is not a contact", hint))
            continue
        try:
            contact = Contact(DURATION.read(entry[0]), DURATION.read(entry[1]))
        except Unusable as error:
            findings += [Finding((index,), f.message, f.hint) for f in error.findings]
            continue
        if contact.down <= contact.up:
            text = f"goes down at {contact.down:g} s, but up only at {contact.up:g} s"
            findings.append(Finding((index,), text))
        read.append((index, contact))
    read.sort(key=lambda each: each[1])
    for (_, earlier), (index, later) in pairwise(read):
        if later.up < earlier.down:
            text = f"begins at {later.up:g} s, during the contact from {earlier.up:g} to {earlier.down:g} s"
            findings.append(Finding((index,), text))
    if findings:
        raise Unusable(*findings)
    return tuple(contact for _, contact in read)


Times = Annotated[
    tuple[Contact, ...] | None,
    BeforeValidator(_read_times),
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": {"type": ["number", "string"]},
            },
            "description": "When it goes up and when down, for each contact",
            "examples": [[["20s", "80s"], ["380s", "440s"]]],
        }
    ),
]


class ContactLinkSection(Section):
    """A link between two nodes: when it is up, and what it is like. Without a schedule: as the trace says."""

    other_names: ClassVar[dict[str, str]] = {"bandwidth": "rate", "delay": "latency", "cost_factor": "cost"}

    between: Ends = Field(examples=["[n01, n02]"])
    one_way: bool = Field(default=False, strict=True, description="Only the first can send")
    periodic: Periodic | None = None
    random: RandomContacts | None = None
    times: Times = None
    always: bool = Field(default=False, strict=True, description="It never goes down")
    rate: LinkRate | None = None
    latency: LinkLatency | None = None
    cost: CostFactor | None = Field(default=None, description="Cost factor: of sending one packet")

    @model_validator(mode="after")
    def _one_schedule(self) -> "ContactLinkSection":
        given = [key for key in _ONE_OF if getattr(self, key)]
        if len(given) > 1:
            raise unusable(f"{' and '.join(given)} are given: a link has one schedule", "leave one out")
        return self

    @property
    def has_schedule(self) -> bool:
        return any(getattr(self, key) for key in _ONE_OF)

    @property
    def period(self) -> float:
        """The mean time from one contact to the next."""
        rule = self.periodic or self.random
        return rule.up + rule.down if rule else float("inf")

    def contacts(self, seed: int, until: float) -> tuple[tuple[Contact, ...], Periods]:
        """Returns the contacts that begin before ``until``, and the expected periods."""
        if self.always:
            return (Contact(0.0, FOREVER),), Periods(0.0, FOREVER)
        if self.times is not None:
            found = tuple(each for each in on_ticks(self.times) if each.up < until)
            return found, measured(found, until)
        if self.periodic is not None:
            up, down, phase = self.periodic.up, self.periodic.down, self.periodic.phase
            return on_ticks(schedules.periodic(up, down, phase, until)), Periods(down, up)
        assert self.random is not None, "asked only where there is a schedule"
        up, down = self.random.up, self.random.down
        rng = Random(f"contacts/{seed}/{'/'.join(self.between)}")  # of its own: others do not change it
        return on_ticks(schedules.random(up, down, rng, until)), Periods(down, up)

    def summary(self) -> str:
        if self.periodic is not None:
            each = self.periodic
            return f"up {each.up:g} s, down {each.down:g} s, phase {each.phase:g} s"
        if self.random is not None:
            return f"up {self.random.up:g} s, down {self.random.down:g} s on average, random"
        if self.times is not None:
            return f"{len(self.times)} listed contact{'s' if len(self.times) > 1 else ''}"
        return "always up" if self.always else "as the trace says"


class ContactRadio(Section):
    """Links that are up and down by a schedule. Each carries its own rate; nobody else hears it."""

    other_names: ClassVar[dict[str, str]] = {"bandwidth": "rate", "delay": "latency", "file": "trace"}

    model: Literal["contacts"]
    rate: LinkRate = Field(description="Of links that do not have one of their own", examples=["256 kb/s"])
    latency: LinkLatency = Field(default=0.0, examples=["10 ms"])
    cost: CostFactor | None = Field(default=None, description="Cost factor: of sending one packet")
    queue: Annotated[int, Field(strict=True, ge=1, le=100_000)] = Field(
        default=50, description="Frames that may wait at each end of a link; lost when it goes down"
    )
    links: tuple[ContactLinkSection, ...] = Field(
        default=(), examples=["[{between: [bus, base], periodic: {up: 60s, down: 300s, phase: 20s}}]"]
    )
    hubs: tuple[Name, ...] = Field(
        default=(),
        description="Nodes with a link to every other node that never goes down, such as a base station's; "
        "`links` may have another one between the two",
        examples=["[base]"],
    )
    trace: ContactTraceSection | None = Field(default=None, description="Contacts from a file")

    @property
    def follows_distance(self) -> bool:
        return False

    def plan(self, nodes: tuple[str, ...], seed: int, until: float) -> ContactPlan:
        """Returns all contacts that begin before ``until`` seconds; the same seed gives the same ones.
        Raises BadInput if there are too many.
        """
        if findings := self.size_findings(until):
            raise BadInput(findings[0].message)
        traced = {} if self.trace is None else self.trace.contacts(nodes)
        links: list[ContactLink] = []
        for link in self._with_hubs(nodes):
            if link.has_schedule:
                links.append(self._link(link, link.between, *link.contacts(seed, until)))
        listed = {frozenset(link.between): link for link in self.links if not link.has_schedule}
        for pair, every in traced.items():
            contacts = tuple(each for each in every if each.up < until)
            settings = listed.get(frozenset(pair))
            ends = pair if settings is None else settings.between
            links.append(self._link(settings, ends, contacts, measured(contacts, until)))
        return ContactPlan(nodes, tuple(links), until)

    def _with_hubs(self, nodes: tuple[str, ...]) -> tuple[ContactLinkSection, ...]:
        taken = {frozenset(link.between) for link in self.links}
        made = []
        for hub in self.hubs:
            for node in nodes:
                pair = frozenset((hub, node))
                if len(pair) == 2 and pair not in taken:
                    taken.add(pair)
                    made.append(ContactLinkSection(between=(node, hub), always=True))
        return (*self.links, *made)

    def _link(
        self,
        own: ContactLinkSection | None,
        ends: tuple[str, str],
        contacts: tuple[Contact, ...],
        periods: Periods,
    ) -> ContactLink:
        def setting(key: str) -> Any:
            stated = None if own is None else getattr(own, key)
            return getattr(self, key) if stated is None else stated

        one_way = own is not None and own.one_way
        values = setting("rate"), setting("latency"), setting("cost")
        return ContactLink(*ends, contacts, *periods, *values, one_way)

    def neighbours(self, nodes: tuple[str, ...]) -> dict[str, list[str]]:
        """Returns for each node those that it can ever send to directly."""
        met: dict[str, dict[str, None]] = {node: {} for node in nodes}
        one_way = {frozenset(link.between) for link in self.links if link.one_way and not link.has_schedule}
        links = self._with_hubs(nodes)
        pairs = [pair for link in links if link.has_schedule for pair in _directions(link)]
        for one, other in self.trace.contacts(nodes) if self.trace is not None else ():
            if frozenset((one, other)) not in one_way:
                pairs += [(one, other), (other, one)]
        pairs += [link.between for link in self.links if link.one_way and not link.has_schedule]
        for sender, receiver in pairs:
            met[sender][receiver] = None
        return {node: list(peers) for node, peers in met.items()}

    def size_findings(self, until: float) -> list[Finding]:
        """Returns what is wrong if contacts are to last for ``until`` seconds."""
        expected = sum(until / link.period for link in self.links)
        if expected <= MOST_CONTACTS:
            return []
        text = f"about {expected:,.0f} contacts in {until:g} s: at most {MOST_CONTACTS:,} are kept"
        return [Finding(("links",), text, "use longer periods or a shorter run")]

    def findings_for(self, nodes: tuple[str, ...]) -> list[Finding]:
        """Returns what does not fit these nodes; places are keys of this section."""
        findings: list[Finding] = []
        traced: dict[tuple[str, str], tuple[Contact, ...]] = {}
        if self.trace is not None:
            findings = [Finding(("trace", *f.at), f.message, f.hint) for f in self.trace.findings_for(nodes)]
            traced = {} if findings else self.trace.contacts(nodes)
        elif not self.links and not self.hubs:
            text = "nobody ever meets anybody: neither links nor a trace is given"
            hint = "for example links: [{between: [n01, n02], periodic: {up: 60s, down: 300s}}]"
            return [Finding((), text, hint)]
        findings += [
            Finding(("hubs", index), f"there is no node {shown(hub)}", did_you_mean(hub, nodes))
            for index, hub in enumerate(self.hubs)
            if hub not in nodes
        ]
        has_trace = self.trace is not None and not findings
        return findings + self._link_findings(nodes, {frozenset(pair) for pair in traced}, has_trace)

    def _link_findings(
        self, nodes: tuple[str, ...], traced: set[frozenset[str]], has_trace: bool
    ) -> list[Finding]:
        known = frozenset(nodes)
        findings: list[Finding] = []
        seen: dict[tuple[str, str], int] = {}
        for index, link in enumerate(self.links):
            at: Place = ("links", index)
            pair = frozenset(link.between)
            strangers = [(end, node) for end, node in enumerate(link.between) if node not in known]
            for end, node in strangers:
                text = f"there is no node {shown(node)}"
                findings.append(Finding((*at, "between", end), text, did_you_mean(node, nodes)))
            if len(pair) == 1:
                findings.append(Finding((*at, "between"), f"{link.between[0]} has no link to itself"))
            elif taken := [seen[each] for each in _directions(link) if each in seen]:
                text = f"these two have a link already, the one at links[{taken[0]}]"
                findings.append(Finding((*at, "between"), text))
            elif not link.has_schedule and self.trace is None:
                text = "no schedule: when is it up?"
                findings.append(Finding(at, text, "give one of periodic, random, times and always"))
            elif has_trace and link.has_schedule and pair in traced:
                text = "the trace has contacts of these two, and here is a schedule as well"
                findings.append(Finding(at, text, "leave the schedule or the trace's contacts out"))
            elif has_trace and not strangers and not link.has_schedule and pair not in traced:
                text = "no schedule, and the trace has no contact of these two"
                findings.append(Finding(at, text, "give one of periodic, random, times and always"))
            seen |= dict.fromkeys(_directions(link), index)
        return findings

    def summary(self) -> list[str]:
        """Describes the radio in a few lines."""
        parts = [f"{len(self.links)} link{'s' if len(self.links) != 1 else ''}"] if self.links else []
        parts += [f"all nodes with {', '.join(self.hubs)}"] if self.hubs else []
        parts += [] if self.trace is None else [f"trace {self.trace.file.path.name} ({self.trace.format})"]
        return [
            f"contacts: {', '.join(parts)}; {self.rate / _MBPS:g} Mb/s, latency {self.latency * 1e3:g} ms "
            "unless a link says otherwise"
        ]


def _directions(link: ContactLinkSection) -> tuple[tuple[str, str], ...]:
    first, second = link.between
    return ((first, second),) if link.one_way else ((first, second), (second, first))
