"""Loads experiment and topology files as values; reports everything that is wrong with a file at once."""

from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from orchestrator.planning.backend_checks import backend_findings
from orchestrator.planning.semantics import own_findings
from orchestrator.planning.sweep import Cell, expand
from orchestrator.spec.application import APPS
from orchestrator.spec.backends import Traits, traits_of
from orchestrator.spec.base import Section
from orchestrator.spec.experiment import SECTIONS, Experiment
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.problems import BadSpec, Finding, Place, Problem, shown
from orchestrator.spec.registered import CODE_ALLOWED
from orchestrator.spec.topology import Topology
from orchestrator.spec.translate import UNKNOWN_KEY, findings_of
from orchestrator.spec.yaml_source import Document, read_document

_SUFFIXES = (".yaml", ".yml")
_STAND_INS: dict[Place, Any] = {("name",): "unnamed", ("duration",): 1.0}
"""Stand-ins for required values that are wrong, so that the rest of the file can still be checked."""

_REACHING = ("name", "nodes", "hosts", "defaults", "core")
"""The keys of a topology that say how its nodes are reached."""
_UNMOVED: dict[str, Any] = {"area": "1 m x 1 m", "mobility": {"model": "static", "scatter": True}}

S = TypeVar("S", bound=Section)


Change = Callable[[Experiment], Experiment]
"""Changes the experiment after loading: another seed, the backend that ``auto`` stands for."""


class Loaded(NamedTuple):
    """A usable file; ``cells`` are the planned runs of an experiment."""

    experiment: Experiment | None
    topology: Topology
    cells: tuple[Cell, ...] = ()


class PlannedExperiment(NamedTuple):
    """An experiment and its runs, one for each cell of its sweep; each is checked and planned once."""

    experiment: Experiment
    cells: tuple[Cell, ...]


def load_planned(path: Path, change: Change | None = None) -> PlannedExperiment:
    """Loads and plans an experiment. Raises ``BadInput`` (a ``BadSpec``) with every problem of the file and
    of the topology it names.
    """
    document = _mapping_in(path, "an experiment", Experiment)
    if _looks_like_topology(document.value):
        hint = f"name it in an experiment: topology: {path.name}"
        raise BadSpec(document.file, [Problem("", "this is a topology, not an experiment", hint)])
    return _experiment(document, path, change)


def load_experiment(path: Path) -> Experiment:
    """Returns the experiment alone, checked as by ``load_planned``."""
    return load_planned(path).experiment


def load_checked(path: Path) -> Experiment:
    """Loads an experiment that was planned before, such as a run's own, without planning it again.

    It leaves ``expect`` out: the extension that defines a metric may be gone or unknown to this process.
    """
    document = _mapping_in(path, "an experiment", Experiment)
    document.value.pop("expect", None)
    value, problems = _with_topology(document, path)
    experiment, findings = _examined(Experiment, value, path.parent)
    return _usable(experiment, document, problems + document.placed(findings))


def load_topology(path: Path, *, code_allowed: bool = True) -> Topology:
    document = _mapping_in(path, "a topology", Topology)
    if _looks_like_experiment(document.value):
        raise BadSpec(document.file, [Problem("", "this is an experiment, not a topology")])
    return _topology(document, path, code_allowed=code_allowed)


class Network(NamedTuple):
    """The part of an experiment that says which nodes there are and how they reach each other."""

    backend: str | None
    topology: Topology

    @property
    def traits(self) -> Traits:
        return traits_of(self.backend)


def load_network(path: Path) -> Network:
    """Loads the network of an experiment file without its query; runs no code that the file names.

    Raises BadInput, also if the topology itself names code.
    """
    document = _mapping_in(path, "an experiment", Experiment)
    value, problems = _with_topology(document, path, code_allowed=False)
    topology, findings = _examined(Topology, value.get("topology") or {}, path.parent, code_allowed=False)
    at_topology = [f._replace(at=("topology", *f.at)) for f in findings]
    backend = value.get("backend")
    usable = _usable(topology, document, problems + document.placed(at_topology))
    return Network(backend if isinstance(backend, str) else None, usable)


def load_machines(path: Path) -> Network:
    """Loads only what says how to reach the nodes of an experiment file.

    It runs no code and reads no part of the file that may name some, so that what is left on a machine can be
    removed even if a user's file is broken or gone. Mobility and radio are not those of the file.
    """
    document = _mapping_in(path, "an experiment", Experiment)
    reference = document.value.get("topology")
    if isinstance(reference, str):
        if fault := _unfit_reference(reference):
            raise _bad(document, document.placed([Finding(("topology",), *fault)]))
        stated = _mapping_in(path.parent / reference, "a topology", Topology).value
    else:
        stated = reference if isinstance(reference, dict) else {}
    reduced = {key: stated[key] for key in _REACHING if key in stated}
    topology, findings = _examined(Topology, {**reduced, **_UNMOVED}, path.parent, code_allowed=False)
    backend = document.value.get("backend")
    at_topology = [f._replace(at=("topology", *f.at)) for f in findings]
    usable = _usable(topology, document, document.placed(at_topology))
    return Network(backend if isinstance(backend, str) else None, usable)


def load_any(path: Path) -> Loaded:
    """Loads an experiment or a topology, whichever the file looks like."""
    document = _mapping_in(path, "an experiment or a topology", Experiment)
    if _looks_like_topology(document.value):
        return Loaded(None, _topology(document, path))
    experiment, cells = _experiment(document, path)
    return Loaded(experiment, experiment.topology, cells)


def _looks_like_topology(value: dict[str, Any]) -> bool:
    return _own_keys(value, Topology, Experiment) > _own_keys(value, Experiment, Topology)


def _looks_like_experiment(value: dict[str, Any]) -> bool:
    return _own_keys(value, Experiment, Topology) > _own_keys(value, Topology, Experiment)


def _own_keys(value: dict[str, Any], model: type[Section], other: type[Section]) -> int:
    return sum(key in value for key in model.known_keys() if key not in other.known_keys())


def _topology(document: Document, path: Path, *, code_allowed: bool = True) -> Topology:
    topology, findings = _examined(Topology, document.value, path.parent, code_allowed=code_allowed)
    return _usable(topology, document, document.placed(findings))


def _experiment(document: Document, path: Path, change: Change | None = None) -> PlannedExperiment:
    value, problems = _with_topology(document, path)
    value, more = _with_swept_topologies(value, document, path)
    problems += more
    experiment, findings = _examined(Experiment, value, path.parent)
    findings = [f for f in findings if not (problems and f.at == ("topology",))]
    if experiment is None or findings or problems:
        findings += own_findings(experiment) if experiment is not None else []
        raise _bad(document, problems + document.placed(findings))
    changed = change(experiment) if change is not None else experiment
    expansion = expand(changed)
    findings = expansion.findings
    if changed.backend != experiment.backend:  # problems of the file do not depend on the machine's backend
        findings = list(dict.fromkeys([*findings, *backend_findings(experiment)]))
    if findings or document.problems:
        raise _bad(document, document.placed(findings))
    return PlannedExperiment(changed, expansion.cells)


def _usable(value: S | None, document: Document, problems: list[Problem]) -> S:
    if problems or document.problems or value is None:
        raise _bad(document, problems)
    return value


def _bad(document: Document, problems: list[Problem]) -> BadSpec:
    problems = document.problems + problems
    return BadSpec(
        document.file, sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))
    )


def _mapping_in(path: Path, what: str, model: type[Section]) -> Document:
    document = read_document(path)
    example = f"name: {(model.model_fields['name'].examples or [''])[0]}"
    if document.value is None:
        raise BadSpec(document.file, [Problem("", "the file is empty", f"{what} starts with {example}")])
    if not isinstance(document.value, dict):
        text = f"{what} is a mapping (key: value), but the file holds {shown(document.value)}"
        raise BadSpec(document.file, [Problem("", text, f"for example {example}", document.lines[()])])
    return document


def _with_topology(
    document: Document, path: Path, *, code_allowed: bool = True
) -> tuple[dict[str, Any], list[Problem]]:
    """Puts the topology into the experiment; problems of the topology's file carry that file's name."""
    reference = document.value.get("topology")
    if not isinstance(reference, str):
        return document.value, []
    without = {key: value for key, value in document.value.items() if key != "topology"}
    at: Place = ("topology",)
    if fault := _unfit_reference(reference):
        return without, document.placed([Finding(at, *fault)])
    file = path.parent / reference
    try:
        topology = load_topology(file, code_allowed=code_allowed)
    except BadSpec as error:
        whole_file = [problem for problem in error.problems if problem.line is None]
        findings = [Finding(at, f"{shown(reference)}: {p.message}", p.hint) for p in whole_file]
        inside = [problem._replace(file=reference) for problem in error.problems if problem.line is not None]
        return without, document.placed(findings) + inside
    return {**without, "topology": topology}, []


def _with_swept_topologies(
    value: dict[str, Any], document: Document, path: Path
) -> tuple[dict[str, Any], list[Problem]]:
    """Reads the topology files that a sweep names; each is called by its name, or that of its file."""
    sweep = value.get("sweep")
    listed = sweep.get("topology") if isinstance(sweep, dict) else None
    if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
        named = [(Path(each).stem, each) for each in dict.fromkeys(listed)]
        stems = Counter(stem for stem, _ in named)
        listed = {stem if stems[stem] == 1 else each: each for stem, each in named}
    if not isinstance(sweep, dict) or not isinstance(listed, dict):
        return value, []
    read: dict[str, Any] = {}
    problems: list[Problem] = []
    for label, reference in listed.items():
        read[label] = reference
        if not isinstance(reference, str):
            continue
        at: Place = ("sweep", "topology")
        if fault := _unfit_reference(reference):
            problems += document.placed([Finding(at, *fault)])
            continue
        try:
            read[label] = load_topology(path.parent / reference).model_dump(mode="json")
        except BadSpec as error:
            texts = [
                f"{shown(reference)}: {p.path}: {p.message}" if p.path else f"{shown(reference)}: {p.message}"
                for p in error.problems
            ]
            problems += document.placed([Finding(at, text) for text in texts])
    return {**value, "sweep": {**sweep, "topology": read}}, problems


def _unfit_reference(reference: str) -> tuple[str, str] | None:
    file = Path(reference)
    if file.is_absolute() or reference.startswith("~"):
        text = f"{shown(reference)} is an absolute path"
        return text, "write it relative to this file, so that both can be moved together"
    if file.suffix not in _SUFFIXES:
        return f"{shown(reference)} is not the name of a YAML file", "for example ../topologies/rwp-25.yaml"
    return None


def _examined(
    model: type[S], document: dict[str, Any], folder: Path, *, code_allowed: bool = True
) -> tuple[S | None, list[Finding]]:
    """Validates, sets aside what is wrong and validates the rest, so that one error does not hide another."""
    findings: list[Finding] = []
    removed: set[Place] = set()
    rest = _copied(model.completed(document))
    for _ in range(4):
        try:
            context = {FOLDER: folder, CODE_ALLOWED: code_allowed}
            return model.model_validate(rest, context=context), findings
        except ValidationError as error:
            new = [
                f for f in findings_of(error, model, rest) if f not in findings and not _within(f.at, removed)
            ]
        if not new:
            break
        findings += new
        removed |= {_set_aside(rest, finding) for finding in new}
        if any((place[:1] == (APPS,) and len(place) < 3) or place[0] in SECTIONS for place in removed):
            # An application that was set aside is not missing.
            removed |= {(APPS,), *((kind,) for kind in SECTIONS)}
    return None, findings


def _copied(value: Any) -> Any:
    """Copies mappings, which change while a document is examined; keeps values that were read before."""
    return {key: _copied(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _within(at: Place, places: set[Place]) -> bool:
    return any(at[:length] in places for length in range(len(at) + 1))


def _set_aside(document: dict[str, Any], finding: Finding) -> Place:
    """Removes an unknown key, or else the whole wrong section: half a section causes false errors."""
    depth = len(finding.at) if finding.message == UNKNOWN_KEY else 3 if finding.at[:1] == (APPS,) else 1
    place = finding.at[:depth]
    if place in _STAND_INS:
        document[str(place[0])] = _STAND_INS[place]
        return place
    # A list entry cannot be left out by name: remove the whole list.
    named = takewhile(lambda key: isinstance(key, str), place)
    place = tuple(named)
    holder: Any = document
    for key in place[:-1]:
        holder = holder.get(key, {}) if isinstance(holder, dict) else {}
    if place and isinstance(holder, dict):
        holder.pop(place[-1], None)
    return place
