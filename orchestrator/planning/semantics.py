"""Checks whether topology, backend and applications fit together, which no single section can check.

``plan_run`` checks and plans an experiment in one pass, so that nothing is computed twice.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from orchestrator.planning.application import AppPlan, application
from orchestrator.planning.backend_checks import backend_findings
from orchestrator.planning.distances import islands, network_at
from orchestrator.planning.extension_checks import extension_findings
from orchestrator.planning.faults import planned_faults
from orchestrator.planning.planned import PlannedRun
from orchestrator.results.expectations import misfits
from orchestrator.spec.application import AppEntry
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import Finding, Unusable
from orchestrator.spec.radio import DiscRadio, Radio80211b


class Checked(NamedTuple):
    """The planned run and the findings. ``run`` is None if there are findings."""

    run: PlannedRun | None
    findings: list[Finding]


def plan_run(experiment: Experiment) -> Checked:
    """Checks and plans an experiment without a sweep, or one cell of a sweep."""
    if broken := extension_findings(experiment):
        return Checked(None, broken)  # parts that depend on these applications cannot be checked
    entries = experiment.entries()
    findings = backend_findings(experiment)
    plans: dict[str, AppPlan] = {}
    for name, entry in entries.items():
        try:
            plans[name] = application(entry.kind).plan(entry)
        except Unusable as error:
            findings += error.findings
    findings += (
        _contact_findings(experiment) + _joint_findings(entries.values()) + _expectation_findings(experiment)
    )
    if findings:  # reachability and faults are checked on a complete plan only
        return Checked(None, findings)
    faults, findings = planned_faults(experiment, plans)
    findings = _reachability_findings(experiment, plans) + findings
    return Checked(None, findings) if findings else Checked(PlannedRun(experiment, plans, faults), [])


def _contact_findings(experiment: Experiment) -> list[Finding]:
    radio, seconds = experiment.topology.radio, experiment.warmup + experiment.duration
    found = radio.size_findings(seconds) if isinstance(radio, ContactRadio) else []
    return [Finding(("topology", "radio", *f.at), f.message, f.hint) for f in found]


def _expectation_findings(experiment: Experiment) -> list[Finding]:
    apps = {name: entry.kind for name, entry in experiment.entries().items()}
    return [
        Finding(("expect", each.place), each.text, each.hint) for each in misfits(experiment.expect, apps)
    ]


def own_findings(experiment: Experiment) -> list[Finding]:
    """Returns what is wrong with applications alone, for a file that is otherwise unusable."""
    return [f for entry in experiment.entries().values() for f in application(entry.kind).own_findings(entry)]


def unused_findings(experiment: Experiment) -> list[Finding]:
    """Returns settings that have no effect in any cell of a sweep."""
    entries = experiment.entries().values()
    return [finding for entry in entries for finding in application(entry.kind).unused_findings(entry)]


def _joint_findings(entries: Iterable[AppEntry]) -> list[Finding]:
    of_kind: dict[str, list[AppEntry]] = {}
    for entry in entries:
        of_kind.setdefault(entry.kind, []).append(entry)
    return [finding for kind, those in of_kind.items() for finding in application(kind).findings(those)]


def _reachability_findings(experiment: Experiment, plans: Mapping[str, AppPlan]) -> list[Finding]:
    """Reports traffic between nodes that never move and are out of radio contact, or never meet."""
    positions = experiment.topology.static_positions()
    radio = experiment.topology.radio
    never_move = bool(positions) or isinstance(radio, ContactRadio)
    if not never_move or experiment.traits.own_machines:
        return []  # the links between real nodes are unknown here
    if isinstance(radio, Radio80211b) and radio.pathloss.changes:
        return []  # losses change over time although nodes do not move
    island = islands(network_at(experiment.topology, positions))
    if isinstance(radio, DiscRadio):
        why = f"hops of {radio.range:g} m do not connect them"
    elif isinstance(radio, ContactRadio):
        why = "no chain of contacts connects them"
    else:
        why = f"no chain of links connects them at {radio.tx_power:g} dBm"
    return [finding for plan in plans.values() for finding in plan.cut_off(island, why)]
