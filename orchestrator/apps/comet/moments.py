"""Explains a moment of a run that detects events: what was detected, who could talk, what waited where."""

from dataclasses import dataclass, field
from typing import Any

from node_agent.apps.comet.telemetry import (
    EventAsked,
    EventContact,
    EventDetected,
    EventDropped,
    EventLink,
    EventStore,
)
from node_agent.telemetry.kinds import tag_of
from orchestrator.answers import Answer
from orchestrator.apps.comet.assumptions import departures
from orchestrator.apps.comet.plan import Recorded
from orchestrator.apps.comet.reading import NS, RunRecords, Seen, read_run
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory

Pair = tuple[str, str]


@dataclass
class _State:
    """What is known at the moment, by pattern, by node, and by node and neighbour."""

    detected: dict[str, list[Seen]] = field(default_factory=dict)
    asked: dict[str, Seen] = field(default_factory=dict)
    stores: dict[str, Any] = field(default_factory=dict)
    links: dict[Pair, Any] = field(default_factory=dict)
    contacts: dict[Pair, Seen] = field(default_factory=dict)
    dropped: int = 0

    def take(self, seen: Seen) -> None:
        node, record = seen.node, seen.record
        kind = record.kind
        if kind == tag_of(EventDetected):
            self.detected.setdefault(record.pattern, []).append(seen)
        elif kind == tag_of(EventAsked):
            self.asked[node] = seen
        elif kind == tag_of(EventStore):
            self.stores[node] = record
        elif kind == tag_of(EventLink):
            self.links[node, record.neighbour] = record
        elif kind == tag_of(EventContact):
            self.contacts[node, record.neighbour] = seen
        elif kind == tag_of(EventDropped):
            self.dropped += 1


def explained_moment(directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
    """``part``: a node; None: all."""
    run = read_run(directory, app)
    end_s = (run.last_ns - run.zero_ns) / NS
    if at_s > end_s:
        raise BadInput(f"--at {at_s:g} s: run {directory.id} has records until {end_s:.1f} s")
    if part is not None and part not in run.recorded.configs:
        raise BadInput(f"--replica {part}: name a node of {app}: {', '.join(run.recorded.configs)}")
    at_ns = run.zero_ns + round(at_s * NS)
    state = _State()
    for seen in run.records:
        if seen.t_ns > at_ns:
            break
        state.take(seen)
    nodes = list(run.recorded.configs) if part is None else [part]
    patterns = [_pattern(promise, state, at_ns) for promise in run.recorded.promises]
    listed = [_node(run, state, node, at_ns) for node in nodes]
    left = [each.text for each in departures(run.recorded, run.measured(at_ns))]
    lines = [each["text"] for each in patterns]
    for each in listed:
        lines += [each["text"], *(f"  {link['text']}" for link in each["links"])]
    if state.dropped:
        lines.append(f"full stores had given up {state.dropped} instances or requests")
    lines += [f"the plan's assumptions no longer held: {text}" for text in left]
    document = {
        "run": directory.id,
        "app": app,
        "at_s": at_s,
        "patterns": patterns,
        "nodes": listed,
        "dropped": state.dropped,
        "departures": left,
    }
    from rich.text import Text

    return Answer(document, [Text(f"{app} at {at_s:g} s"), *map(Text, lines)])


def _pattern(promise: Any, state: _State, at_ns: int) -> dict[str, Any]:
    found = state.detected.get(promise.name, [])
    text = f"{promise.name} at {promise.sink}: detected {len(found)} times so far"
    document: dict[str, Any] = {"pattern": promise.name, "sink": promise.sink, "detections": len(found)}
    if found:
        last = found[-1]
        delay = (last.t_ns - last.record.end_ns) / NS
        ago = (at_ns - last.t_ns) / NS
        text += f", last {ago:.1f} s ago, {delay:.1f} s after its last event ({promise.delay:.1f} s promised)"
        document |= {"last_s_ago": round(ago, 3), "delay_s": round(delay, 3), "promised_s": promise.delay}
    return {**document, "text": text}


def _node(run: RunRecords, state: _State, node: str, at_ns: int) -> dict[str, Any]:
    store = state.stores.get(node)
    text = f"{node}: nothing recorded yet"
    document: dict[str, Any] = {"node": node}
    if store is not None:
        kept = {"instances": store.instances, "matches": store.matches, "undecided": store.undecided}
        text = (
            f"{node}: keeps {store.instances} instances to match and {store.matches} matches for requests; "
            f"{store.undecided} matches wait for an absence"
        )
        document |= kept
    asked = state.asked.get(node)
    if asked is not None:
        ago = (at_ns - asked.t_ns) / NS
        text += f"; asked last for {', '.join(asked.record.events)}, {ago:.1f} s ago"
        document |= {"asked": list(asked.record.events), "asked_s_ago": round(ago, 3)}
    links = [_link(run, state, node, other, at_ns) for other in run.recorded.configs[node].plan.neighbours]
    return {**document, "links": links, "text": text}


def _link(run: RunRecords, state: _State, node: str, other: str, at_ns: int) -> dict[str, Any]:
    contact, link = state.contacts.get((node, other)), state.links.get((node, other))
    up = contact is not None and contact.record.up
    since_s = (at_ns - (run.zero_ns if contact is None else contact.t_ns)) / NS
    words = f"connected for {since_s:.1f} s" if up else f"no connection for {since_s:.1f} s"
    edp = _planned_edp(run.recorded, node, other)
    if not up and edp is not None:
        words += f" ({edp:.0f} s planned)"
    waiting = 0 if link is None else link.waiting
    size = 0 if link is None else link.waiting_bytes
    if waiting:
        words += f"; {waiting} messages of {size / 1e3:.1f} kB wait"
    return {
        "neighbour": other,
        "up": up,
        "since_s": round(since_s, 3),
        "planned_down_s": edp,
        "waiting": waiting,
        "waiting_bytes": size,
        "text": f"to {other}: {words}",
    }


def _planned_edp(recorded: Recorded, node: str, other: str) -> float | None:
    return next((each.edp for each in recorded.links if {each.lower, each.upper} == {node, other}), None)
