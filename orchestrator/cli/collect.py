"""`rove collect`: fetches records that are still on a run's nodes, and judges the run again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.cli.verdicts import verdict_text
from orchestrator.errors import EXIT_FAILED, BadInput, RoveError
from orchestrator.lifecycle import teardown
from orchestrator.lifecycle.teardown import TAKE_OVER_S, State, state_of
from orchestrator.runs import journal as journals
from orchestrator.runs.events import EventLog
from orchestrator.runs.journal import TORN_DOWN, Journal
from orchestrator.runs.run_directory import RunDirectory, resolve

if TYPE_CHECKING:
    from orchestrator.backends.remote.collection import Collected
    from orchestrator.backends.remote.recollection import Fetched
    from orchestrator.lifecycle.invocation import FinishedRun
    from orchestrator.runs.verdict import Verdict


def collect(
    run: RunReference,
    analyze: Annotated[
        bool, typer.Option("--analyze/--no-analyze", help="Analyse in Spark what is here then.")
    ] = True,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Fetch the records of a run that are still on its nodes, and judge the run anew.

    For nodes that could not be reached when the run ended, or a run whose orchestrator was killed. Files are
    verified by SHA-256 and removed on a node only then; what broke off goes on where it was.
    Exit code: 0 valid, 1 failed or something is still missing, 2 bad input, 3 invalid.

    [bold]Examples[/]

      rove collect latest

      rove collect pi-lab --no-analyze

      rove collect 20260301-120000-1a2b --json
    """
    # Imported here: completion and --help must not wait for them.
    from orchestrator.lifecycle.interruption import signals_as_keyboard_interrupt
    from orchestrator.lifecycle.rejudging import read_verdict

    directory = resolve(run, runs_dir)
    members = directory.members() if directory.is_sweep else [directory]
    for each in dict.fromkeys((directory, *members)):
        if state_of(each) is State.ALIVE:
            raise BadInput(_busy(each))
    if directory.is_sweep and state_of(directory) is State.DEAD:
        teardown.tear_down(directory)
    found = [_collected(member) for member in members]
    with signals_as_keyboard_interrupt():
        changed = any(one.changed for one in found) or _is_outdated(directory, members)
        verdict = _judged(directory, found, analyze) if changed else read_verdict(directory)
    document = {
        "run": directory.id,
        "directory": str(directory.path),
        "nodes": [entry for one in found for entry in one.entries()],
        "verdict": verdict.verdict if verdict is not None else None,
        "reasons": list(verdict.reasons) if verdict is not None else [],
    }
    if as_json:
        print_json(document)
    else:
        _show(document)
    missing = any(not one.whole for one in found)
    raise typer.Exit(EXIT_FAILED if missing or verdict is None else verdict.verdict.exit_code)


@dataclass(frozen=True)
class _Found:
    """The result for one run's nodes; nodes that hold nothing any more were not asked.

    ``changed``: more of its data is here, and it was judged again.
    """

    run: RunDirectory
    fetched: "Sequence[Fetched]"
    changed: bool

    @property
    def whole(self) -> bool:
        return all(one.collected is not None for one in self.fetched)

    def entries(self) -> list[dict[str, Any]]:
        return [
            {
                "run": self.run.id,
                "node": one.node,
                "outcome": "collected" if one.collected is not None else one.status.value,
                "reason": one.reason,
                **(_counts(one.collected) if one.collected is not None else {}),
            }
            for one in self.fetched
        ]


def _counts(found: "Collected") -> dict[str, Any]:
    refused = sum(each.count for each in found.refused)
    return {"files": found.files, "bytes": found.bytes, "fetched": found.fetched, "refused": refused}


def _collected(run: RunDirectory) -> _Found:
    from orchestrator.backends.remote.collection import refused_before
    from orchestrator.backends.remote.ledger import nodes_of, uncollected, waiting
    from orchestrator.backends.remote.recollection import fetch
    from orchestrator.lifecycle.rejudging import rejudge
    from orchestrator.planning.load import load_experiment

    # A killed run or collection may not have judged the data that was here by then.
    died = state_of(run) is State.DEAD
    if died:
        teardown.tear_down(run)
    nodes = nodes_of(run.path)
    if not nodes or (all(node.removed for node in nodes) and not died):
        return _Found(run, (), False)
    experiment = load_experiment(run.spec)
    journal = _reopened(run)
    try:
        waited = waiting(run.path)
        try:
            with step(errors, f"collecting {run.id}") as progress:
                fetched = fetch(run, experiment, journal, progress)
            EventLog(run.events).add(
                "collect",
                collected=[one.node for one in fetched if one.collected is not None],
                missing={one.node: one.reason for one in fetched if one.collected is None},
            )
        finally:  # also when interrupted: data that is here is not fetched, and so not judged, again
            if changed := died or waiting(run.path) != waited:
                rejudge(run, experiment, uncollected(run.path), refused_before(run))
    finally:
        journal.close(TORN_DOWN)
    return _Found(run, fetched, changed)


def _is_outdated(directory: RunDirectory, members: "Sequence[RunDirectory]") -> bool:
    """Whether a sweep's verdict is outdated: one of its runs may have been collected alone."""
    from orchestrator.lifecycle.rejudging import read_verdict

    if not directory.is_sweep or (verdict := read_verdict(directory)) is None:
        return False
    now = {member.id: found.verdict for member in members if (found := read_verdict(member)) is not None}
    return bool(verdict.members) and verdict.members != now


def _busy(run: RunDirectory) -> str:
    owner = journals.owner(journals.read(run.journal))
    if owner is not None and owner.is_alive():
        return f"run {run.id} is still going on, and collects by itself: rove down {run.id} ends it"
    return f"run {run.id} is being collected or taken down by another rove: try again when that is done"


def _reopened(run: RunDirectory) -> Journal:
    journal = Journal.take_over(run.journal, TAKE_OVER_S)
    if journal is None:
        raise RoveError(f"{run.journal} is locked by a living process")
    return journal


def _judged(directory: RunDirectory, found: "Sequence[_Found]", analyze: bool) -> "Verdict":
    """All of them together."""
    from orchestrator.lifecycle.invocation import FinishedRun
    from orchestrator.lifecycle.rejudging import read_verdict
    from orchestrator.runs.files import read_json

    runs = []
    for one in found:
        if (verdict := read_verdict(one.run)) is not None:
            factors = (read_json(one.run.manifest) or {}).get("factors", {})
            runs.append(FinishedRun(one.run, factors, verdict))
    owner = _Collection(directory, _reopened(directory))
    try:
        verdict = owner.judge(runs)
        return _evaluated(owner, runs, verdict) if analyze else verdict
    finally:
        directory.remove_temporary()
        owner.journal.close(TORN_DOWN)


@dataclass(frozen=True)
class _Collection:
    """The runs of one command, collected later."""

    directory: RunDirectory
    journal: Journal

    @property
    def events(self) -> EventLog:
        return EventLog(self.directory.events)

    def judge(self, runs: "Sequence[FinishedRun]") -> "Verdict":
        from orchestrator.planning.load import load_planned
        from orchestrator.runs.files import write_json
        from orchestrator.runs.verdict import judge_sweep

        if not self.directory.is_sweep:
            return runs[0].verdict
        planned = len(load_planned(self.directory.spec).cells)
        verdict = judge_sweep({run.directory.id: run.verdict for run in runs}, planned)
        write_json(self.directory.verdict, verdict.document())
        return verdict


def _evaluated(owner: _Collection, runs: "Sequence[FinishedRun]", verdict: "Verdict") -> "Verdict":
    from orchestrator.cli.evaluation import evaluate
    from orchestrator.lifecycle.invocation import Finished
    from orchestrator.planning.load import load_experiment
    from orchestrator.spark.java import find_java

    try:
        find_java()
    except RoveError as error:
        errors.print(f"Not analysed: {error}", markup=False)
        return verdict
    expect = load_experiment(owner.directory.spec).expect
    with step(errors, "analysis") as progress:
        return evaluate(owner, Finished(verdict, tuple(runs), False), expect, progress).verdict


def _show(document: dict[str, Any]) -> None:
    if not document["nodes"]:
        console.print("Nothing to collect: what the nodes recorded is here.", markup=False)
    for node in document["nodes"]:
        text = node["reason"] or _summary(node)
        console.print(f"{node['node']}  {node['outcome']}  {text}", markup=False, soft_wrap=True)
    console.print(f"verdict  {verdict_text(document['verdict'])}")
    for reason in document["reasons"]:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    console.print(f"data     {document['directory']}", markup=False, soft_wrap=True)


def _summary(node: dict[str, Any]) -> str:
    text = f"{node['files']} files, {node['bytes']:,} bytes, {node['fetched']:,} of them new"
    refused = node["refused"]
    return f"{text}; {refused} refused: no record has such files" if refused else text
