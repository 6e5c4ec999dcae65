"""Checks that the backend of an experiment can do what the experiment asks for."""

from collections.abc import Callable, Iterable
from functools import partial

from node_agent.extensions import ExtensionError
from orchestrator.services.costs import reader_findings
from orchestrator.services.registry import routing_service
from orchestrator.spec.backends import AUTO, BACKENDS, choosable
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.foreign_calls import called
from orchestrator.spec.problems import Finding, listed
from orchestrator.spec.registered import file_of


def backend_findings(experiment: Experiment) -> list[Finding]:
    """Returns what the backend cannot do; with ``auto``, checks every backend that may be chosen."""
    return _protocol_findings(experiment) + _own_findings(experiment) + _air_findings(experiment)


def _candidates(experiment: Experiment) -> list[str]:
    """Returns the backends that the experiment may run on."""
    return choosable() if experiment.backend == AUTO else [experiment.backend]


def _protocol_findings(experiment: Experiment) -> list[Finding]:
    service = routing_service(experiment.routing)
    traits = {name: BACKENDS[name].traits for name in _candidates(experiment)}
    for name in traits:
        found = service.findings(traits[name])
        if found := found or reader_findings(experiment.routing, traits[name].virtual_time):
            return [Finding(("routing", *f.at), f.message, f.hint) for f in found]
    missing = [name for name in traits if not service.runs_on(traits[name])]
    if not missing:
        return []
    text = f"{service.protocol} does not run on the backend {missing[0]}"
    fit = [name for name in BACKENDS if service.runs_on(BACKENDS[name].traits)]
    hint = f"use backend: {listed(fit)}, or protocol: olsr, which runs everywhere"
    return [Finding(("routing", "protocol"), text, hint)]


def _own_findings(experiment: Experiment) -> list[Finding]:
    """Returns the findings of the backends' own checks."""
    found: dict[Finding, None] = {}
    for name in _candidates(experiment):
        check = BACKENDS[name].findings
        try:
            found |= called(
                f"backend {name}",
                file_of(name, check),
                partial(_distinct, check, experiment),
                own=BACKENDS.is_builtin(name),
            )
        except ExtensionError as error:
            found[Finding(("backend",), str(error))] = None
    return list(found)


def _distinct(
    check: Callable[[Experiment], Iterable[Finding]], experiment: Experiment
) -> dict[Finding, None]:
    return dict.fromkeys(check(experiment))


_WANTED = {
    "silence": "silence a radio",
    "partition": "split the network",
    "cut": "cut a link",
    "degrade": "weaken a link",
    "move": "move a node elsewhere",
}


def _air_findings(experiment: Experiment) -> list[Finding]:
    """Returns the faults that change the air where that is not emulated here."""
    unable = [name for name in _candidates(experiment) if not BACKENDS[name].traits.changes_air]
    return [
        Finding(
            ("faults", index, fault.kind),
            f"nobody can {_WANTED[fault.kind]} with backend {unable[0]}",
            "use a crash, or backend: netns",
        )
        for index, fault in enumerate(experiment.faults)
        if unable and fault.kind in _WANTED
    ]
