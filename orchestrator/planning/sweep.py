"""Expands a sweep into its cells: one experiment for every combination of the varied values.

Nothing but the varied values differs between cells. Mobility follows from ``seed`` and the topology alone, so
cells that differ in ``replicas`` see the same movements: comparisons of k are paired.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from node_agent.extensions.files import short_name
from orchestrator.planning.planned import PlannedRun
from orchestrator.planning.semantics import plan_run, unused_findings
from orchestrator.spec.application import APPLICATIONS, APPS
from orchestrator.spec.experiment import SECTIONS, Experiment
from orchestrator.spec.problems import BadSpec, Finding, Place, Problem, did_you_mean, dotted, in_words, shown
from orchestrator.spec.routing import DEFAULT_PROTOCOL
from orchestrator.spec.sweep import Choice, Scalar, choices
from orchestrator.spec.translate import findings_of

MAX_CELLS = 10_000
_ROUTING = "routing"
_ENOUGH_FINDINGS = 100
Chosen = tuple[int, ...]
"""The position of the chosen value, for each factor."""
_FIXED = {
    "name": "all cells belong to one experiment",
    "sweep": "a sweep cannot vary itself",
    "expect": "expectations hold for every cell",
    "routing.protocol": "vary the whole section: routing: [olsr, {protocol: aodv, hello: 2s}]",
    "topology.mobility.file": "vary the whole section: topology.mobility: {one: {…}, other: {…}}",
    "topology.radio.preset": "vary one of its values, or the whole section: topology.radio: {one: {…}}",
}


@dataclass(frozen=True)
class Cell:
    number: int
    """Counts from 1, as in the names of the runs' directories."""
    factors: dict[str, Scalar]
    """The cell's values of the factors, by path; quantities in base units."""
    run: PlannedRun

    @property
    def experiment(self) -> Experiment:
        return self.run.experiment


class Expansion(NamedTuple):
    cells: tuple[Cell, ...]
    findings: list[Finding]


def cells(experiment: Experiment) -> tuple[Cell, ...]:
    """Returns all combinations, the file's last factor varying fastest; without a sweep, one cell."""
    expansion = expand(experiment)
    if expansion.findings:
        raise BadSpec(experiment.name, [Problem(dotted(f.at), f.message, f.hint) for f in expansion.findings])
    return expansion.cells


def expand(experiment: Experiment) -> Expansion:
    """Checks and plans every cell. No other code does that."""
    if not experiment.sweep:
        run, findings = plan_run(experiment)
        findings += unused_findings(experiment)
        return Expansion((Cell(1, {}, run),) if run is not None and not findings else (), findings)
    document = {key: value for key, value in experiment.resolved().items() if key != "sweep"}
    fixed = _FIXED | _fixed_in_applications(experiment)
    findings = [finding for path in experiment.sweep for finding in _path_findings(path, document, fixed)]
    findings += unused_findings(experiment) + _choice_findings(experiment)
    count = math.prod(len(values) for values in experiment.sweep.values())
    if count > MAX_CELLS:
        findings.append(Finding(("sweep",), f"{count:,} combinations; at most {MAX_CELLS:,} are run"))
    return Expansion((), findings) if findings else _expanded(experiment, document)


def _fixed_in_applications(experiment: Experiment) -> dict[str, str]:
    return {
        ".".join(str(part) for part in (*entry.prefix, path)): why
        for entry in experiment.entries().values()
        for path, why in APPLICATIONS[entry.kind].fixed.items()
    }


def _expanded(experiment: Experiment, document: dict[str, Any]) -> Expansion:
    done: list[Cell] = []
    failing: dict[Finding, set[Chosen]] = {}
    unusable: set[Chosen] = set()
    looked_at: list[Chosen] = []
    constant = _constant(experiment)
    for chosen in itertools.product(*(range(len(values)) for values in experiment.sweep.values())):
        written = _written(experiment, chosen)
        varied = _varied(document, written)
        try:
            cell = Experiment.model_validate({**varied, **constant})
        except ValidationError as error:
            findings = findings_of(error, Experiment, varied)
            unusable.add(chosen)
        else:
            run, findings = plan_run(cell)
            if run is not None:
                done.append(Cell(len(looked_at) + 1, _factors(written, cell), run))
        looked_at.append(chosen)
        for finding in findings:
            failing.setdefault(finding, set()).add(chosen)
        if len(failing) >= _ENOUGH_FINDINGS:
            break
    if not failing:
        return Expansion(tuple(done), _repeated(done, experiment))
    attributed = []
    for finding, failed in failing.items():
        # A cell that could not be examined further does not rule out a common cause.
        tried = [choice for choice in looked_at if choice in failed or choice not in unusable]
        attributed.append(_attributed(finding, failed, tried, experiment))
    return Expansion((), attributed)


def _constant(experiment: Experiment) -> dict[str, Any]:
    """Returns what no factor varies, as validated values, so that it need not be validated again."""
    varied = {path.partition(".")[0] for path in experiment.sweep}
    own = {kind: section for kind, section in experiment.apps.items() if kind in SECTIONS}
    values = {
        **{key: getattr(section, key) for section in own.values() for key in type(section).model_fields},
        **{key: getattr(experiment, key) for key in Experiment.model_fields if key not in (APPS, "sweep")},
        APPS: {name: section for name, section in experiment.apps.items() if name not in own},
    }
    return {key: value for key, value in values.items() if key not in varied and (key != APPS or value)}


def _written(experiment: Experiment, chosen: Chosen) -> dict[str, Choice]:
    sweep = experiment.sweep.items()
    return {path: choices(values)[i] for (path, values), i in zip(sweep, chosen, strict=True)}


def _path_findings(path: str, document: dict[str, Any], fixed: Mapping[str, str]) -> list[Finding]:
    at = ("sweep", path)
    whole = path.split(".")[0]
    reason = path if path in fixed else whole
    if reason in ("sweep", "expect") or path in fixed:
        return [Finding(at, "cannot be varied", fixed[reason])]
    known = [name for name in _paths(document) if name not in fixed]
    if path in known:
        return []
    same_end = [name for name in known if name.split(".")[-1] == path.split(".")[-1]]
    if inside := _list_around(path, document):
        names = f"{inside}: {{one: […], other: […]}}"
        hint = f"no single entry of {inside} can be: give whole lists names, {names}"
    else:
        hint = f'did you mean "{same_end[0]}"?' if same_end else did_you_mean(path, known)
    return [Finding(at, "there is no such value to vary in this experiment", hint)]


def _list_around(path: str, document: dict[str, Any]) -> str | None:
    """Returns the path of the list that a path leads into, if it does."""
    value: Any = document
    steps = path.split(".")
    for count, step in enumerate(steps[:-1], 1):
        value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, list):
            return ".".join(steps[:count])
    return None


def _choice_findings(experiment: Experiment) -> list[Finding]:
    if "auto" not in experiment.sweep.get("backend", ()):
        return []
    text = "auto is chosen once for a whole experiment, and not by cell"
    return [Finding(("sweep", "backend"), text, "vary sim and netns, or leave it out and use backend: auto")]


def _paths(document: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in document.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{key}.")


def _varied(document: dict[str, Any], written: dict[str, Choice]) -> dict[str, Any]:
    """Applies the cell's values; sets a section before values inside it, whatever their order in the file."""
    for path in sorted(written, key=lambda path: path.count(".")):
        value = written[path].value
        if path == _ROUTING and isinstance(value, str):
            own: dict[str, Any] = document[_ROUTING]
            # The file's own protocol keeps the file's settings; other protocols get their defaults.
            value = own if own["protocol"] == value else {"protocol": value}
        document = _with(document, path.split("."), value)
    return document


def _with(document: dict[str, Any], keys: list[str], value: Any) -> dict[str, Any]:
    """Returns a copy that differs at one place and shares the rest."""
    first, *rest = keys
    inner = document.get(first)
    replaced = _with(inner, rest, value) if rest and isinstance(inner, dict) else value
    return {**document, first: replaced}


def _factors(written: dict[str, Choice], cell: Experiment) -> dict[str, Scalar]:
    """Returns the names of choices, and values in base units; for a word or mapping that stands for a whole
    section, what was written.
    """
    resolved = cell.resolved()
    factors: dict[str, Scalar] = {}
    for path, choice in written.items():
        found: Any = resolved
        for key in path.split("."):
            found = found[key]
        is_value = choice.label is None and isinstance(found, Scalar)
        factors[path] = _named(found) if is_value else _label(choice)
    return factors


def _named(value: Scalar) -> Scalar:
    """Shortens a user's extension to ``my_policy.py:decide``, without its folder."""
    return short_name(value) if isinstance(value, str) else value


def _label(choice: Choice) -> Scalar:
    """Labels a value without a name: ``{protocol: olsr, metric: hops}`` becomes ``olsr metric=hops``."""
    if choice.label is not None:
        return choice.label
    value: Any = choice.value
    if not isinstance(value, dict):
        return _named(value)
    settings = [f"{key}={in_words(value[key])}" for key in value if key != "protocol"]
    return " ".join([in_words(value.get("protocol", DEFAULT_PROTOCOL)), *settings])


def _attributed(
    finding: Finding, failed: set[Chosen], tried: list[Chosen], experiment: Experiment
) -> Finding:
    """Moves a finding to its cause: the file itself, a value of the sweep, or a combination of values."""
    place = dotted(finding.at)
    if len(failed) == len(tried) and place not in experiment.sweep:
        return finding
    first = next(choice for choice in tried if choice in failed)
    where = "" if place in experiment.sweep else f"{place}: "
    for position, (path, values) in enumerate(experiment.sweep.items()):
        index = first[position]
        if failed != {chosen for chosen in tried if chosen[position] == index}:
            continue
        choice = choices(values)[index]
        at: Place = ("sweep", path, choice.place(index))
        inside = tuple(path.split("."))
        if finding.at[: len(inside)] == inside and isinstance(choice.value, dict | list):
            return Finding((*at, *finding.at[len(inside) :]), finding.message, finding.hint)
        value = "" if place == path else f"with {shown(_label(choice))}, "
        return Finding(at, value + where + finding.message, finding.hint)
    written = _written(experiment, first)
    combination = " and ".join(f"{path} = {_label(value)}" for path, value in written.items())
    more = f" (and {len(failed) - 1} more combinations)" if len(failed) > 1 else ""
    return Finding(("sweep",), f"with {combination}{more}: {where}{finding.message}", finding.hint)


def _repeated(done: list[Cell], experiment: Experiment) -> list[Finding]:
    """Finds values that mean the same, such as ``5 m/s`` and ``18 km/h``."""
    for path, listed in experiment.sweep.items():
        values = {cell.experiment.routing if path == _ROUTING else cell.factors[path] for cell in done}
        if len(values) < len(listed):
            return [Finding(("sweep", path), "two of these values mean the same")]
    return []
