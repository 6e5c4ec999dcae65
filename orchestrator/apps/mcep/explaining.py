"""Explains from the telemetry why an interest switched, why a situation was delivered, and what waited."""

from collections import Counter
from math import hypot
from typing import Any

from node_agent.apps.mcep.config import QueryConfig, WhenFar, WhenTimed
from node_agent.apps.mcep.reusing.telemetry import SelectionsDecided
from node_agent.apps.mcep.telemetry import (
    ENDLESS_NS,
    InterestBroker,
    InterestStalled,
    InterestSwitched,
    SensorRead,
    SituationFound,
)
from node_agent.telemetry.kinds import tag_of
from orchestrator.answers import Answer
from orchestrator.apps.mcep.moves_explained import hosts_at, move_line, moves_of
from orchestrator.apps.mcep.plan import Recorded, condition_text, recorded_in, scopes
from orchestrator.errors import BadInput
from orchestrator.results.app_records import NS, AppRecords, Seen, document_of, read_records
from orchestrator.runs.run_directory import RunDirectory

_SWITCHED, _FOUND, _READ = tag_of(InterestSwitched), tag_of(SituationFound), tag_of(SensorRead)
_BROKER, _STALLED = tag_of(InterestBroker), tag_of(InterestStalled)
_DECIDED = tag_of(SelectionsDecided)


def read_run(directory: RunDirectory, app: str) -> tuple[Recorded, AppRecords]:
    """Raises BadInput if the manifest has no plan of the application."""
    recorded = document_of(directory, app, recorded_in)
    return recorded, read_records(directory, app, scopes(recorded))


def listed_switches(directory: RunDirectory, app: str, part: str | None, most: int) -> Answer:
    """The newest switches, each with its reason, and what each query got. ``part``: a query; None: all."""
    recorded, run = read_run(directory, app)
    queries = {each.name: each for each in recorded.settings.queries}
    if part is not None and part not in queries:
        raise BadInput(f"{part} is no query of {app}: name one of {', '.join(queries)}")
    switches = {name: _switches(each, run) for name, each in queries.items() if part in (None, name)}
    rows = sorted(
        (row for each in switches.values() for row in each),
        key=lambda row: (row["at_s"], row["query"], row["epoch"]),
    )
    got = Counter(each.record.query for each in _of(run, _FOUND))
    moves = sorted((row for name in switches for row in moves_of(name, run)), key=lambda row: row["at_s"])
    told = [
        (row["at_s"], f"{row['at_s']:9.1f} s  {row['query']} epoch {row['epoch']}: {row['why']}")
        for row in rows[-most:]
    ]
    told += [(row["at_s"], move_line(row)) for row in moves[-most:]]
    lines = [line for _, line in sorted(told, key=lambda each: each[0])]
    for what, count in (("moves", len(moves)), ("switches", len(rows))):
        if count > most:
            lines.insert(0, f"the newest {most} of {count} {what}; --query NAME lists those of one query")
    for name, each in switches.items():
        lines.append(f"{name}: {_counted(len(each), 'switch')}, {_counted(got[name], 'situation')}")
    lines.append("--event NAME#NUMBER tells why a situation was delivered")
    counts = {name: {"switches": len(each), "situations": got[name]} for name, each in switches.items()}
    document = {"run": directory.id, "app": app, "switches": rows[-most:], "queries": counts}
    document["moves"] = moves[-most:]
    return _answer(document, lines)


def explained_situation(directory: RunDirectory, app: str, event: str) -> Answer:
    """``event``: like ``ahead#3``, the third that the query's focal object got."""
    recorded, run = read_run(directory, app)
    name, _, number = event.rpartition("#")
    query = next((each for each in recorded.settings.queries if each.name == name), None)
    if query is None or not number.isdigit():
        names = ", ".join(f"{each.name}#1" for each in recorded.settings.queries)
        raise BadInput(f"--event {event}: name a situation by query and number, such as {names}")
    got = [each for each in _of(run, _FOUND) if each.record.query == name]
    found = next((each for each in got if each.record.number == int(number)), None)
    if found is None:
        raise BadInput(f"--event {event}: {query.focal} got {len(got)} situations of {name}")
    epoch = next((row for row in _switches(query, run) if row["epoch"] == found.record.epoch), None)
    seen = {
        f"{each.node}#{each.record.number}": each.record
        for each in _of(run, _READ)
        if f"{each.node}#{each.record.number}" in found.record.ancestors
    }
    ancestors = [_ancestor(each, seen.get(each), epoch) for each in found.record.ancestors]
    at_s = found.record.at_ns / NS
    due = max(at_s, epoch["start_s"] if epoch else 0.0)
    delay = (found.t_ns - run.opened_ns) / NS - due
    when = "before the switch, and history was asked for" if found.record.historical else "after the switch"
    head = (
        f"{event} at {query.focal}: {found.record.type} {found.record.facts} at {at_s:.1f} s of the drives, "
        f"{delay:.1f} s after it could be known"
    )
    lines = [head]
    if epoch is not None:
        lines.append(
            f"  it belongs to epoch {epoch['epoch']}, from {epoch['start_s']:.1f} s on: {epoch['why']}"
        )
        lines.append(f"  it is from {abs(at_s - epoch['start_s']):.1f} s {when}")
    if found.record.born != found.record.epoch:
        lines.append(f"  it was computed for epoch {found.record.born}, and holds in this one, too")
    shared = _sharing_text(found.record)
    if shared:
        lines.append(f"  {shared}")
    lines += [f"  made of {each['text']}" for each in ancestors]
    document = {
        "run": directory.id,
        "app": app,
        "event": event,
        "type": found.record.type,
        "at_s": at_s,
        "delay_s": round(delay, 6),
        "epoch": epoch,
        "historical": found.record.historical,
        "by": found.record.by,
        "precision": found.record.precision,
        "recall": found.record.recall,
        "ancestors": ancestors,
    }
    return _answer(document, lines)


def explained_moment(directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
    """``part``: a query or a broker; None: all."""
    recorded, run = read_run(directory, app)
    end_s = (run.last_ns - run.zero_ns) / NS
    if at_s > end_s:
        raise BadInput(f"--at {at_s:g} s: run {directory.id} has records until {end_s:.1f} s")
    settings = recorded.settings
    queries = [each for each in settings.queries if part in (None, each.name)]
    if not queries and part not in settings.areas:
        known = ", ".join([*(each.name for each in settings.queries), *settings.areas])
        raise BadInput(f"{part} is no query and no broker of {app}: name one of {known}")
    at_ns = run.zero_ns + round(at_s * NS)
    before = [each for each in run.records if each.t_ns <= at_ns]
    lines, listed = [], []
    for query in queries:
        switches = [row for row in _switches(query, run) if row["at_s"] <= at_s]
        count = sum(each.record.kind == _FOUND and each.record.query == query.name for each in before)
        text = f"{query.name}: {count} situations so far; " + (
            f"epoch {switches[-1]['epoch']}: {switches[-1]['why']}" if switches else "it has not begun"
        )
        lines.append(text)
        hosts = hosts_at(query.name, run, at_ns)
        if hosts:
            lines.append("  operators: " + ", ".join(f"{name} on {host}" for name, host in hosts.items()))
        epoch = switches[-1] if switches else None
        listed.append({"query": query.name, "situations": count, "epoch": epoch, "operators": hosts})
    brokers, stalls = {}, {}
    for each in before:
        if each.record.kind == _BROKER:
            brokers[each.node] = each.record
        elif each.record.kind == _STALLED:
            stalls[each.node] = each.record.reason
    for node, record in sorted(brokers.items()):
        if queries or node == part:
            lines.append(f"{node}: {_kept(record)}")
    lines += [f"{node}: {reason}" for node, reason in sorted(stalls.items()) if reason]
    lines += _managers([each for each in before if queries or each.node == part])
    document = {
        "run": directory.id,
        "app": app,
        "at_s": at_s,
        "queries": listed,
        "stalls": {node: reason for node, reason in stalls.items() if reason},
    }
    return _answer(document, [f"{app} at {at_s:g} s", *lines])


def _managers(before: list[Seen]) -> list[str]:
    """What selection managers had decided."""
    newest = {each.record.manager: each for each in before if each.record.kind == _DECIDED}
    return [
        f"{each.node}: selection manager {name} decided about {each.record.selections} selections, and "
        f"{each.record.processed} were processed"
        for name, each in sorted(newest.items())
    ]


def _counted(number: int, what: str) -> str:
    more = "es" if what.endswith("ch") else "s"
    return f"{number} {what}{'' if number == 1 else more}"


def _kept(record: Any) -> str:
    arrived = f"all arrived up to {record.arrived_ns / NS:.1f} s"
    if record.arrived_ns >= ENDLESS_NS:
        arrived = "all arrived, and all clients have left"
    waiting = f"{_counted(record.waiting, 'message')} wait{'s' if record.waiting == 1 else ''}"
    return f"{arrived}; keeps {_counted(record.stored, 'event')}; {waiting}"


def _of(run: AppRecords, kind: str) -> list[Seen]:
    return [each for each in run.records if each.record.kind == kind]


def _switches(query: QueryConfig, run: AppRecords) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before: Any = None
    for each in _of(run, _SWITCHED):
        record = each.record
        if record.query != query.name:
            continue
        rows.append(
            {
                "query": query.name,
                "epoch": record.epoch,
                "at_s": round((each.t_ns - run.zero_ns) / NS, 3),
                "start_s": record.start_ns / NS,
                "since_s": record.since_ns / NS,
                "region": None if record.x is None else [record.x, record.y, record.radius],
                "how": record.how,
                "why": _why(query, before, record) + _how(record.how),
            }
        )
        before = record
    return rows


def _why(query: QueryConfig, before: Any, now: Any) -> str:
    if now.x is None:
        return f"{query.focal} left, and the query ended"
    if before is None or before.x is None:
        return f"{query.focal} told its first place, ({now.x:.0f}, {now.y:.0f}) m"
    moved = hypot(now.x - before.x, now.y - before.y)
    passed = (now.start_ns - before.start_ns) / NS
    facts = f"{query.focal} is {moved:.0f} m and {passed:.1f} s from the last switch"
    match query.when:
        case WhenTimed(seconds):
            return f"{facts}, more than {seconds:g} s"
        case WhenFar(metres):
            return f"{facts}, more than {metres:g} m"
        case _:
            return f"{facts}; {condition_text(query)}"


def _how(how: str) -> str:
    """Where the graph of the new region came from, if it did not simply move there."""
    texts = {
        "prepared": "a graph that was prepared there serves it",
        "began": "no graph was ready there, so one began",
        "shared": "it reads the graph that others read there",
    }
    return f"; {texts[how]}" if how in texts else ""


def _sharing_text(record: Any) -> str:
    """Why a result came from another query's selection, or how far it depends on such results."""
    if record.precision is None:
        return ""
    quality = f"precision {record.precision:.2f} and recall {record.recall:.2f} by atomic events"
    if record.by is not None:
        return (
            f"it is the result of a selection of {record.by}, which was processed for both: against the own "
            f"selection it has {quality}"
        )
    if min(record.precision, record.recall) < 1:
        return f"its own selection was processed, but with results of other queries: {quality}"
    return "its own selection was processed"


def _ancestor(name: str, record: Any, epoch: dict[str, Any] | None) -> dict[str, Any]:
    if record is None:
        return {"event": name, "text": f"{name}, which no record tells of"}
    where = f"({record.x:.0f}, {record.y:.0f}) m"
    text = f"{name}: {record.type} {record.value} at {record.at_ns / NS:.1f} s at {where}"
    if epoch is not None and epoch["region"] is not None:
        x, y, radius = epoch["region"]
        text += f", {hypot(record.x - x, record.y - y):.0f} m from the middle of the region of {radius:.0f} m"
    return {
        "event": name,
        "type": record.type,
        "at_s": record.at_ns / NS,
        "x": record.x,
        "y": record.y,
        "text": text,
    }


def _answer(document: dict[str, Any], lines: list[str]) -> Answer:
    from rich.text import Text

    return Answer(document, [Text(each) for each in lines])
