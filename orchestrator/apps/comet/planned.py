"""From a section to plans: events with their rates, links as the planner sees them, and what is wrong."""

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.grammar import PatternError, parse
from node_agent.apps.comet.model import DetectConfig, OwnEvent
from node_agent.apps.comet.node_plan import NodePlan, StoreLimits
from orchestrator.apps.comet.assumptions import Measured
from orchestrator.apps.comet.measuring import with_measured
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.conversion import Order
from orchestrator.apps.comet.planning.links import Link, Sizes
from orchestrator.apps.comet.planning.node_plans import node_plans
from orchestrator.apps.comet.planning.planners import (
    Planner,
    all_push,
    centralized_heuristic,
    centralized_optimal,
    comet,
)
from orchestrator.apps.comet.planning.problem import Request, Unplannable, World, tasks, world
from orchestrator.apps.comet.planning.together import Joint, plan_requests, tree_within
from orchestrator.apps.comet.section import DetectSection, DetectSettings
from orchestrator.apps.comet.trace_file import Times, listed_times
from orchestrator.contacts.plan import TICK_S, ContactPlan
from orchestrator.spec.application import AppEntry
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, shown

CONNECT_S = 6.0
"""Until nodes that meet have noticed it and are connected: they try all the time, with pauses."""
EXCHANGES = 5
"""Latencies that this takes, and an acknowledgement."""
CARRIED = 0.8
"""The share of a link's rate that is left for contents: the rest is headers and keep-alives."""
REQUEST_SIZE = 100
MOMENT_S = 1.0
"""Active periods are taken as no shorter than this."""
LONGEST_DRAIN_S = 60.0
"""Active periods are taken as no longer than this, or the disconnection: what waits is gone by then."""

PLANNERS: Mapping[str, Planner] = {
    "ours": beyond,
    "comet": comet,
    "comet_by_cost": partial(comet, order=Order.COST),
    "comet_first_phase": partial(comet, second_phase=False),
    "all_push": all_push,
    "centralized_heuristic": centralized_heuristic,
    "centralized_optimal": centralized_optimal,
}


@dataclass(frozen=True)
class Detection:
    """All that was decided: the plans, and what each node is given."""

    given: World
    requests: tuple[Request, ...]
    joint: Joint
    configs: dict[str, DetectConfig]
    doubts: tuple[str, ...] = ()
    """Why promised delays may not be kept, by link."""

    def of_request(self, name: str) -> list[int]:
        """The places of the plans for a request."""
        return [
            place
            for place, plan in enumerate(self.joint.plans)
            if plan.tree.task.name == name or plan.tree.task.name.rpartition(".")[0] == name
        ]


def section_of(entry: AppEntry) -> DetectSettings:
    assert isinstance(entry.section, DetectSection), "the registry finds applications by their sections"
    return entry.section.detect


def planned_detection(entry: AppEntry, measured: Measured | None = None) -> Detection:
    """``measured``: rates and contacts of a run, assumed in place of those of the file.

    Raises Unusable with everything that is wrong, by places in the file.
    """
    section, scenario, at = section_of(entry), entry.scenario, entry.at("detect")
    until = scenario.warmup + scenario.duration
    contacts = scenario.topology.contact_plan(scenario.seed, until)
    if contacts is None:
        text = "events are detected over links that come and go, and this topology has none"
        raise Unusable(Finding(at, text, "say when nodes meet: radio: {model: contacts, ...}"))
    requests, findings = [], list(_node_findings(section, scenario.topology.node_names, at))
    findings += _late_findings(section, until, at)
    for name, said in section.patterns.items():
        try:
            requests.append(Request(name, parse(said.pattern), said.sink, said.tolerance))
        except PatternError as error:
            findings.append(Finding((*at, "patterns", name, "pattern"), str(error)))
    times, unread = listed_times(section, until, (*at, "events"))
    findings += unread
    if findings:
        raise Unusable(*findings)
    rates = _rates(section, times, scenario.seed, until)
    assumed = {name: section.events[name].assume or rate for name, rate in rates.items()}
    links = links_of(contacts, section.disconnections, until)
    if measured is not None:
        assumed = with_measured(assumed, measured)
        links = measured_links(links, measured, section.disconnections)
    try:
        sizes = Sizes(section.event_size, REQUEST_SIZE)
        given = world(links, _sources(section, times, assumed), sizes)
    except Unplannable as error:
        raise Unusable(Finding(at, str(error))) from error
    for request in requests:
        try:
            for task in tasks(request, given):
                tree_within(task, given)
        except Unplannable as error:
            findings.append(Finding((*at, "patterns", request.name), str(error)))
    if findings:
        raise Unusable(*findings)
    try:
        joint = plan_requests(requests, given, PLANNERS[section.planner])
    except Unplannable as error:
        raise Unusable(Finding(at, str(error))) from error
    doubts = () if measured is not None else tuple(_doubts(joint, contacts, until))
    return _detection(entry, section, times, rates, Detection(given, tuple(requests), joint, {}, doubts))


def _detection(
    entry: AppEntry,
    section: DetectSettings,
    times: Mapping[str, Times],
    rates: Mapping[str, float],
    planned: Detection,
) -> Detection:
    """With what each node is given. ``rates``: at which events really occur."""
    given, requests, joint = planned.given, planned.requests, planned.joint
    owners = {place: request.name for request in requests for place in planned.of_request(request.name)}
    limits = StoreLimits(section.store.waiting, section.store.kept, section.event_size, REQUEST_SIZE)
    priorities = {name: each.priority for name, each in section.patterns.items()}
    plans = node_plans(joint.plans, [owners[place] for place in sorted(owners)], limits, priorities)
    events: dict[str, list[OwnEvent]] = {}
    for name, source in given.sources.items():
        said = section.events[name]
        seed = f"{entry.scenario.seed}/{entry.name}"
        own = OwnEvent(name, rates[name], said.length, said.start, said.stop, seed, times.get(name))
        events.setdefault(source.node, []).append(own)
    for node in entry.scenario.topology.node_names:
        plans.setdefault(node, NodePlan(node, limits=limits))  # no plan needs it
    configs = {node: DetectConfig(plan, tuple(events.get(node, ()))) for node, plan in plans.items()}
    return replace(planned, configs=configs)


def _node_findings(section: DetectSettings, nodes: tuple[str, ...], at: Place) -> Iterator[Finding]:
    named = {("events", name, "node"): each.node for name, each in section.events.items()}
    named |= {("patterns", name, "sink"): each.sink for name, each in section.patterns.items()}
    for place, node in named.items():
        if node not in nodes:
            yield Finding((*at, *place), f"there is no node {shown(node)}", did_you_mean(node, nodes))


def _late_findings(section: DetectSettings, until: float, at: Place) -> Iterator[Finding]:
    for name, each in section.events.items():
        if each.start >= until:
            text = f"occurs from {each.start:g} s on, and the run is over after {until:g} s"
            yield Finding((*at, "events", name, "start"), text, "times are seconds after sources open")


def _rates(section: DetectSettings, times: Mapping[str, Times], seed: int, until: float) -> dict[str, float]:
    """At which events really occur; of listed ones, the mean."""
    unrated = [name for name, each in section.events.items() if each.rate is None and not each.is_listed]
    drawn = random.Random(f"zipf/{seed}").sample(unrated, len(unrated))
    zipf = {}
    if section.zipf is not None:
        zipf = {
            name: section.zipf.fastest / rank**section.zipf.exponent for rank, name in enumerate(drawn, 1)
        }
    found = {}
    for name, each in section.events.items():
        rate = zipf.get(name, each.rate)
        if name in times:
            rate = sum(start < until for start, _ in times[name]) / until
        assert rate is not None, "the section was checked"
        found[name] = rate
    return found


def _sources(
    section: DetectSettings, times: Mapping[str, Times], assumed: Mapping[str, float]
) -> Iterator[EventSource]:
    for name, each in section.events.items():
        length, begin, end = each.length, each.start, each.stop or float("inf")
        if name in times:
            # Those that the pattern can have: its windows may be too short for others.
            length = min(stop - start for start, stop in times[name])
            begin, end = min(times[name])[0], math.nextafter(max(times[name])[0], math.inf)
        yield EventSource(name, each.node, assumed[name], length, begin, end)


def links_of(contacts: ContactPlan, disconnections: str, until: float) -> Iterator[Link]:
    """Links that are never up are left out."""
    for link in contacts.links:
        if not link.contacts:
            continue
        edp = max(link.edp, link.longest_down(until)) if disconnections == "longest" else link.edp
        eap = min(link.eap, max(edp, LONGEST_DRAIN_S))
        latency = EXCHANGES * link.latency + CONNECT_S
        bandwidth = CARRIED * link.rate / 8
        yield Link(link.a, link.b, edp, eap, bandwidth, latency, link.cost, link.one_way)


def _doubts(joint: Joint, contacts: ContactPlan, until: float) -> Iterator[str]:
    """Names the links of plans that are down for longer than plans assume, and those whose contacts may be
    over before nodes have noticed them.
    """
    trees = [plan.tree for plan in joint.plans]
    edges = [edge for tree in trees for junction in tree.junctions for edge in junction.inputs]
    edges += [edge for tree in trees for edge in tree.absent]
    assumed = {(hop.link.a, hop.link.b): hop.link.edp for edge in edges for hop in edge.hops}
    for (a, b), edp in sorted(assumed.items()):
        link = contacts.link(a, b)
        if link is None:
            continue
        name, longest = f"{a} – {b}", link.longest_down(until)
        if longest > edp + TICK_S:
            yield f"{name} is down for up to {longest:.4g} s, the plan assumes {edp:.4g} s"
        short = sum(each.length < CONNECT_S and each.down < until for each in link.contacts)
        if short:
            yield f"{short} of {len(link.contacts)} contacts of {name} may end before nodes notice them"


def measured_links(links: Iterable[Link], measured: Measured, disconnections: str) -> Iterator[Link]:
    """With the periods that nodes saw, of links that they used."""
    for link in links:
        seen = measured.link(link.a, link.b)
        if seen is None:
            yield link
            continue
        edp = seen.longest_down if disconnections == "longest" else seen.mean_down
        eap = link.eap if seen.mean_up is None else seen.mean_up
        yield replace(link, edp=edp, eap=max(min(eap, max(edp, LONGEST_DRAIN_S)), MOMENT_S))
