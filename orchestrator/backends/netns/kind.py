"""The backend ``netns`` as a value: every node a network namespace of this machine, in real time."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.model.rates import RATES
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import BackendKind, Traits
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import Finding
from orchestrator.spec.radio import RATES_HINT, DiscRadio

if TYPE_CHECKING:
    from orchestrator.backends.netns.checks import Check

LEAST_CORES = 2


def _create(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    from orchestrator.backends.netns.backend import NetnsBackend

    return NetnsBackend(run, run_id, directory, journal)


def _findings(experiment: Experiment) -> list[Finding]:
    """A disc is where an 802.11b radio is heard; it sends at a rate that such a radio has."""
    radio = experiment.topology.radio
    if not isinstance(radio, DiscRadio) or radio.bandwidth / 1e6 in RATES:
        return []
    rate = radio.bandwidth / 1e6
    text = f"{rate:g} Mb/s is not a rate of 802.11b, which is what the backend netns emulates"
    return [Finding(("topology", "radio", "bandwidth"), text, RATES_HINT)]


def _prepare(experiments: list[Experiment], command: list[str]) -> None:
    from orchestrator.backends.netns.rootless import become_root
    from orchestrator.services.registry import service_of

    for routing in {each.routing.protocol: each.routing for each in experiments}.values():
        if (service := service_of(routing)) is not None:
            service.require()
    become_root(command)


def _lacking() -> list[str]:
    from orchestrator.backends.netns.checks import checks

    return lacking(len(os.sched_getaffinity(0)), checks())


def lacking(cores: int, found: "list[Check]") -> list[str]:
    missing = [f"{check.name}: {check.advice}" for check in found if check.required and not check.ok]
    if missing:
        return [f"for lack of what namespaces need here ({'; '.join(missing)})"]
    return ["for on one core the radio would be late"] if cores < LEAST_CORES else []


NETNS = BackendKind(
    summary="network namespaces on this machine, real time, real kernel stacks",
    traits=Traits(knows_links=True, changes_air=True),
    create=_create,
    findings=_findings,
    prepare=_prepare,
    lacking=_lacking,
    chosen_because="this machine permits network namespaces; real time",
)
