"""What a fault does to nodes and the air, as a value; and what is wrong with faults that change the air."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from orchestrator.radio.changes import UNCHANGED, AirChanges, Weakened
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.faults import APART, Fault, Kind
from orchestrator.spec.problems import Finding, did_you_mean, shown
from orchestrator.spec.radio import DiscRadio
from orchestrator.spec.topology import Topology

_MOST_NAMED = 6


class Effect(NamedTuple):
    """``subject``: whom it is done to, in words. ``crashes``: the node whose agent is killed."""

    subject: str
    crashes: str | None = None
    air: AirChanges = UNCHANGED


def on_node(kind: Kind, node: str) -> Effect:
    """Returns the effect of a crash or a silence."""
    return Effect(node, node) if kind == "crash" else Effect(node, air=AirChanges(silent=(node,)))


def air_effect(fault: Fault, topology: Topology) -> Effect | list[Finding]:
    """Returns the effect of a fault without a target, or what is wrong with it, at places within the fault's
    value.
    """
    names = topology.node_names
    if fault.partition is not None:
        return _partition(fault.partition, names)
    if fault.cut is not None:
        one, other = fault.cut
        air = AirChanges(links=(Weakened(one, other),))
        return _unknown(enumerate(fault.cut), names) or Effect(f"{one} – {other}", air=air)
    if fault.degrade is not None:
        (one, other), by_db = fault.degrade.link, fault.degrade.by
        findings = _unknown(((("link", place), node) for place, node in enumerate((one, other))), names)
        if isinstance(topology.radio, DiscRadio):
            text = "within its range a disc receives everything, however weak the signal"
            findings.append(Finding((), text, "cut the link, or use an 802.11b radio"))
        if isinstance(topology.radio, ContactRadio):
            text = "a link of contacts is up or down, and has no signal that could be weaker"
            findings.append(Finding((), text, "cut the link, or use an 802.11b radio"))
        if any(one in wire.between and other in wire.between for wire in topology.wires):
            text = f"{one} and {other} have a wire, which has no signal that could be weaker"
            findings.append(Finding((), text, "cut the link"))
        air = AirChanges(links=(Weakened(one, other, by_db),))
        return findings or Effect(f"{one} – {other} by {by_db:g} dB", air=air)
    assert fault.move is not None, "validated"
    return _move(fault.move.node, fault.move.to, topology)


def _partition(groups: dict[str, tuple[str, ...]], names: Sequence[str]) -> Effect | list[Finding]:
    findings, placed = [], dict[str, str]()
    single = len(groups) == 1 and APART in groups
    for name, nodes in groups.items():
        at = () if single else (name,)
        if not nodes:
            findings.append(Finding(at, "nobody is on this side", "name its nodes"))
        findings += _unknown((((*at, place), node) for place, node in enumerate(nodes)), names)
        for node in nodes:
            if placed.setdefault(node, name) != name:
                text = f"{node} is in {placed[node]} as well: a node can be on one side only"
                findings.append(Finding(at, text, "leave it out of one of them"))
    if not findings and len(groups) == 1 and len(placed) == len(names):
        findings.append(
            Finding((), "nobody is left on the other side", "leave a node out, or name two groups")
        )
    if findings:
        return findings
    rest = [node for node in names if node not in placed]
    sides = [_side("" if single else name, nodes) for name, nodes in groups.items()]
    sides += [f"the other {len(rest)}" if len(rest) > 1 else rest[0]] if rest else []
    return Effect(" | ".join(sides), air=AirChanges(splits=(tuple(groups.values()),)))


def _side(name: str, nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
    named = ", ".join(nodes[:_MOST_NAMED]) + more
    return f"{name} ({named})" if name else named


def _move(node: str, to: tuple[float, float], topology: Topology) -> Effect | list[Finding]:
    findings = _unknown([("node", node)], topology.node_names)
    area, radio = topology.area, topology.radio
    if not (0 <= to[0] <= area.width and 0 <= to[1] <= area.height):
        text = f"({to[0]:g}, {to[1]:g}) m is outside the area of {area}"
        findings.append(Finding(("to",), text))
    if isinstance(radio, ContactRadio):
        text = "contacts say who can talk when here: where nodes are changes nothing"
        findings.append(Finding((), text, "cut links"))
    elif not radio.follows_distance:
        text = "losses are given for each link here: where nodes are changes nothing"
        findings.append(Finding((), text, "cut or degrade links"))
    return findings or Effect(f"{node} to ({to[0]:g}, {to[1]:g}) m", air=AirChanges(places={node: to}))


def _unknown(named: Iterable[tuple[object, str]], names: Sequence[str]) -> list[Finding]:
    """Returns a finding for each name that is no node, by its place."""
    known = frozenset(names)
    found = []
    for place, node in named:
        if node not in known:
            at = place if isinstance(place, tuple) else (place,)
            found.append(Finding(at, f"there is no node {shown(node)}", did_you_mean(node, names)))
    return found
