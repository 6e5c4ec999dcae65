"""Formats explanations and replays: a document for programs, text and tables for people."""

from pathlib import Path
from typing import Literal

import msgspec
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from node_agent.apps.dataflow.model.decision import Threshold
from node_agent.apps.dataflow.switching.chooser import try_policy
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.apps.dataflow.switching.reason_text import shown
from node_agent.extensions import ExtensionError
from node_agent.extensions.files import is_reference
from orchestrator.answers import Answer
from orchestrator.apps.dataflow.decisions.explain import Dead, Explanation, explain, faults_at
from orchestrator.apps.dataflow.decisions.history import read_history
from orchestrator.apps.dataflow.decisions.moves import moved_by
from orchestrator.apps.dataflow.decisions.reasons import summary
from orchestrator.apps.dataflow.decisions.replay import Replay, replay
from orchestrator.apps.dataflow.decisions.switches import Idle, switches
from orchestrator.apps.dataflow.spec.switching import read_threshold, threshold_of
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.problems import Unusable, did_you_mean

CAVEAT = (
    "Only the choices are replayed. Had they been made, queues and the load on the network would have been "
    "others, and so the costs: run the experiment with the policy to know what it achieves."
)


def explained(directory: RunDirectory, app: str, at_s: float, replica: str | None) -> Answer:
    history = read_history(directory, app, with_carried=True)
    made = explain(history, at_s, replica)
    faults = faults_at(history, at_s)
    document = {"run": history.run, "app": app, "at_s": at_s, "faults": faults, "decisions": made}
    moved = moved_by(history.told, history.zero_ns + round(at_s * 1e9), history.zero_ns)
    if history.plan.moving:
        document["migrations"] = moved
    hosts = {each.operator: each.node for each in moved}
    nodes = {r.id: hosts.get(r.operator, r.node) for r in history.plan.replicas}
    lines: list[RenderableType] = [Text(f"run {history.run} at {at_s:g} s")]
    for fault in faults:
        until = "to the end" if fault.until_s is None else f"until {fault.until_s:.1f} s"
        lines.append(Text(f"fault: {fault.fault}, from {fault.from_s:.1f} s {until}"))
    lines += (Text(each.in_words()) for each in moved)
    for each in made:
        lines += _explanation(each, at_s, nodes)
    return Answer(msgspec.to_builtins(document), lines)


def listed_switches(
    directory: RunDirectory, app: str, replica: str | None, operator: str | None, most: int
) -> Answer:
    history = read_history(directory, app, with_carried=True)
    every = switches(history, replica, operator)
    shown_ones = every[-most:]
    document = {
        "run": history.run,
        "app": app,
        "switches": shown_ones,
        "left_out": len(every) - len(shown_ones),
    }
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("at", "replica", "from", "to", "for", "why"):
        side: Literal["left", "right"] = "right" if heading in ("at", "for") else "left"
        table.add_column(heading, justify=side, no_wrap=heading != "why")
    for each in shown_ones:
        old = "(start)" if each.first else each.old or "no route"
        why = each.why + _idle(each.idle)
        held = f"{each.until_s - each.at_s:.1f} s"
        row = (f"{each.at_s:.1f} s", each.replica, old, each.new or "no route", held, why)
        table.add_row(*map(escape, row))
    head = Text(f"run {history.run}: {len(every)} switches, first choices included")
    lines: list[RenderableType] = [head, table]
    if left_out := len(every) - len(shown_ones):
        lines.insert(1, Text(f"{left_out} earlier ones are not shown: --most {len(every)} shows all"))
    lines.append(Text(f"rove explain {history.run} --at TIME says more about one of them"))
    return Answer(msgspec.to_builtins(document), lines)


def _idle(idle: Idle | None) -> str:
    """Says that a way carried nothing although its sender had input."""
    if idle is None or not idle.had_input:
        return ""
    return f" It carried nothing from {idle.from_s:.1f} to {idle.until_s:.1f} s."


def replayed(directory: RunDirectory, app: str, policy: str, threshold: str | None) -> Answer:
    policy = _policy(policy)
    gain = None if threshold is None else _threshold(threshold)
    history = read_history(directory, app)
    if not history.series:
        raise BadInput(f"nothing was routed in {history.run}: the stream goes to an operator that moves")
    made = replay(history, policy, gain)
    run_rule = f"{', '.join(made.run_policies)} with threshold {', '.join(made.run_thresholds)}"
    rule = f"{made.policy} with threshold {made.threshold or ', '.join(made.run_thresholds)}"
    lines: list[RenderableType] = [
        Text(f"run {made.run}: {rule}, replayed beside {run_rule}, as run"),
        _table(made),
    ]
    for failed in made.failed:
        text = f"{failed.name} failed {failed.count} times, last at {failed.place}: {failed.error}"
        lines.append(Text(f"{text}; shortest_path chose in its place"))
    lines.append(Text(CAVEAT))
    return Answer({**msgspec.to_builtins(made), "app": app, "caveat": CAVEAT}, lines)


def _killed(dead: Dead, at_s: float) -> str:
    killed = f"killed at {dead.killed_s:.1f} s"
    if dead.back_s is None:
        return f"its agent was dead, {killed} and not started again"
    if at_s < dead.back_s:
        return f"its agent was dead, {killed}, back at {dead.back_s:.1f} s"
    return f"its agent, {killed}, was back since {dead.back_s:.1f} s and had decided nothing yet"


def _explanation(each: Explanation, at_s: float, nodes: dict[str, str]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    to = f"{each.to} on {nodes.get(each.to, '?')}" if each.to else "no route"
    if each.dead is not None:
        lines.append(Text(f"\n{each.replica} on {each.node} → {each.downstream}: {_killed(each.dead, at_s)}"))
        lines.append(Text(f"  Its last decision before that, at {each.decided_s:.1f} s: {to}. {each.why}"))
        return lines
    held = f"for {at_s - each.since_s:.1f} s, since {each.since_s:.1f} s"
    lines.append(Text(f"\n{each.replica} on {each.node} → {each.downstream}: {to}, {held}"))
    lines.append(Text(f"  {each.why}"))
    if each.idle_s is not None and each.had_input:
        why = f"although {each.replica} had input"
        text = f"This way carries nothing: no tuple has arrived over it for {each.idle_s:.1f} s, {why}."
        lines.append(Text(f"  {text}"))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("  replica", no_wrap=True)
    table.add_column("node", no_wrap=True)
    headings = ["link", "to the sinks", *(["of all inputs"] if each.shared else []), "queue"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for candidate in each.candidates:
        chosen = candidate.to == each.to or candidate.to in each.shares
        costs = [shown(candidate.link), shown(candidate.path)]
        costs += [shown(candidate.aggregate)] if each.shared else []
        queue = "–" if candidate.queue is None else str(candidate.queue)
        name, node = escape(candidate.to), escape(nodes.get(candidate.to, "?"))
        table.add_row(f"{'*' if chosen else ' '} {name}", node, *costs, queue)
    lines.append(table)
    decided = (
        f"  Decided at {each.decided_s:.1f} s by {each.policy}, threshold {each.threshold}; costs are "
        f"{each.metric} from {each.source}, {each.cost_age_s:.1f} s old then."
    )
    lines.append(Text(decided))
    if (switched := each.switched) is None:
        lines.append(Text("  It is the first choice since the agent started."))
        return lines
    lines.append(
        Text(f"  Last switch at {switched.at_s:.1f} s, from {switched.old or 'no route'}: {switched.why}")
    )
    lines.append(Text(f"    before, at {switched.before_s:.1f} s: {summary(switched.before, each.shared)}"))
    lines.append(Text(f"    then: {summary(switched.after, each.shared)}"))
    return lines


def _policy(name: str) -> str:
    """Returns a registered policy, or a user's file as an absolute path, after trying it. Raises BadInput."""
    if is_reference(name):
        name = str(Path(name).resolve())
    elif name not in POLICIES:
        hint = did_you_mean(name, POLICIES) or f"there are {', '.join(POLICIES)}, and my_policy.py:decide"
        raise BadInput(f"there is no policy {name!r}: {hint}")
    try:
        try_policy(name, POLICIES[name])
    except ExtensionError as error:
        raise BadInput(f"--policy: {error}") from None
    return name


def _threshold(text: str) -> Threshold:
    try:
        return threshold_of(read_threshold(text if "%" in text else float(text)))
    except Unusable as error:
        raise BadInput(f"--threshold: {error}") from None
    except ValueError:
        raise BadInput(f"--threshold: {text!r} is neither a number nor a share like 10%") from None


def _table(made: Replay) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("replica", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("switches", "no route", "mean cost", "above best", "same choice"):
        table.add_column(heading, justify="right")
    table.add_column("time at", overflow="fold")
    for each in made.compared:
        for name, course in (("as run", each.run), ("replayed", each.replayed)):
            first = name == "as run"
            table.add_row(
                f"{each.replica} → {each.downstream}" if first else "",
                name,
                str(course.switches),
                f"{course.no_route_s:.1f} s",
                _cost(course.mean_cost),
                _cost(course.regret),
                "" if first else f"{each.agreement:.0%}",
                ", ".join(f"{to} {seconds:.1f} s" for to, seconds in course.seconds.items()) or "–",
            )
    return table


def _cost(cost: float | None) -> str:
    return "–" if cost is None else f"{cost:.2f}"
