"""`rove set`: changes a network that is up by hand, in the words of the faults."""

import asyncio
from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any

import typer

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.errors import BadInput
from orchestrator.runs import journal as journals
from orchestrator.runs.run_directory import resolve

USAGE = {
    "move": "NODE X Y",
    "cut": "NODE NODE",
    "degrade": "NODE NODE LOSS, such as n01 n02 10dB",
    "silence": "NODE, or OPERATOR/NUMBER, or OPERATOR/in_use",
    "crash": "NODE, or OPERATOR/NUMBER, or OPERATOR/in_use",
    "partition": "GROUP…, each like n01,n02 or west=n01,n02; one group is apart from the rest",
    "restore": "[NODE…]: what was done by hand to exactly these nodes; without, all of it",
}
IN_USE = "in_use"
OPTIONS = ("--for", "--runs-dir", "--json")
NEGATIVE_NUMBERS: dict[str, Any] = {"ignore_unknown_options": True}
"""Lets the parser of options pass -5 on as a word; it passes mistyped options on as well."""


def set_(
    run: RunReference,
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help=", ".join(USAGE), autocompletion=lambda: list(USAGE))
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="Whom, and how: see the examples.", show_default=False),
    ] = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", help="Take it back after this time (10s).", show_default=False),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Change a network that is up: move a node, cut or weaken a link, silence a node, split the network.

    The same words as under faults: in an experiment file. The network is that of a run in real time, or of
    rove up. Everything is written to the run's events with who did it, and the run's verdict and report say
    that it was changed by hand.

    [bold]Examples[/]

      rove set latest move n03 120 80

      rove set latest move n03 -5 80

      rove set latest cut n01 n02 --for 10s

      rove set latest degrade n01 n02 10dB

      rove set latest silence n03

      rove set latest crash recognise/in_use --for 5s

      rove set latest partition n01,n02

      rove set latest restore n03
    """
    from orchestrator.live.door import NotLive, set_by_hand

    wanted = wanted_by(action, words or [], lasting)
    directory = resolve(run, runs_dir)
    if directory.is_sweep:
        raise BadInput(f"{directory.id} is a sweep: name the one of its runs that goes on (rove status)")
    if not journals.is_locked(directory.journal):
        raise BadInput(f"run {directory.id} has ended: only a network that is up can be changed")
    try:
        done = asyncio.run(set_by_hand(directory, wanted))
    except NotLive as error:
        raise BadInput(str(error)) from None
    if as_json:
        print_json({"run": directory.id, "set": wanted, "done": done})
    else:
        console.print(done, markup=False, soft_wrap=True)


def wanted_by(action: str, words: Sequence[str], lasting: str | None = None) -> dict[str, Any]:
    """Returns the fault, without its time, that the words of a command line mean. Raises BadInput."""
    from orchestrator.spec.problems import did_you_mean

    if mistyped := next((word for word in (action, *words) if word.startswith("--")), None):
        hint = did_you_mean(mistyped, OPTIONS) or f"there are {', '.join(OPTIONS[:-1])} and {OPTIONS[-1]}"
        raise BadInput(f"there is no option {mistyped}: {hint}")
    if action not in USAGE:
        hint = did_you_mean(action, list(USAGE)) or f"there is {', '.join(USAGE)}"
        raise BadInput(f"there is no action {action!r}: {hint}")
    if action == "restore":
        if lasting is not None:
            raise BadInput("--for: what is restored stays so")
        return {action: list(words)}
    match action, list(words):
        case "move", [node, x, y]:
            value: Any = {"node": node, "to": [_number(x), _number(y)]}
        case "cut", [one, other]:
            value = [one, other]
        case "degrade", [one, other, loss]:
            value = {"link": [one, other], "by": _number(loss)}
        case (("silence" | "crash"), [target]):
            value = _target(target)
        case "partition", [_, *_]:
            value = _groups(words)
        case _:
            raise BadInput(f"rove set RUN {action} {USAGE[action]}")
    return {action: value, **({} if lasting is None else {"for": lasting})}


def _number(text: str) -> Any:
    """Returns a number without a unit as one, so that it is in base units; other text as it is, also ``nan``,
    which JSON does not have.
    """
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text


def _target(text: str) -> dict[str, Any]:
    operator, slash, which = text.rpartition("/")
    if not slash:
        return {"node": text}
    if which == IN_USE:
        return {"operator": operator, IN_USE: True}
    if not which.isdecimal():
        raise BadInput(f"{text!r} is neither a node nor a replica: write {operator}/0 or {operator}/{IN_USE}")
    return {"operator": operator, "replica": int(which)}


def _groups(words: Sequence[str]) -> Any:
    groups = {}
    for number, word in enumerate(words, start=1):
        name, named, nodes = word.rpartition("=")
        key = name if named else f"group {number}"
        if key in groups:
            raise BadInput(f"there are two groups {key!r}")
        groups[key] = [node for node in nodes.split(",") if node]
    return next(iter(groups.values())) if len(groups) == 1 else groups
