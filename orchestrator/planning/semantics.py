"""What no single section can tell: whether topology, backend and applications go together.

``plan_run`` checks an experiment and plans it in one go: nothing is worked out twice.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from orchestrator.planning.application import AppPlan, application
from orchestrator.planning.distances import islands, network_at
from orchestrator.planning.faults import planned_faults
from orchestrator.planning.planned import PlannedRun
from orchestrator.radio.rates import RATES
from orchestrator.spec.application import AppEntry
from orchestrator.spec.core import core_findings
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.pathloss import LossTrace
from orchestrator.spec.problems import Finding, Unusable, listed
from orchestrator.spec.radio import RATES_HINT, DiscRadio
from orchestrator.spec.routing import Aodv, Ours
from orchestrator.spec.scenario import REMOTE


class Checked(NamedTuple):
    """``run`` is None where there are findings."""

    run: PlannedRun | None
    findings: list[Finding]


def plan_run(experiment: Experiment) -> Checked:
    """Of an experiment without a sweep, or of one cell of it."""
    entries = experiment.entries()
    findings = scenario_findings(experiment)
    plans: dict[str, AppPlan] = {}
    for name, entry in entries.items():
        try:
            plans[name] = application(entry.kind).plan(entry)
        except Unusable as error:
            findings += error.findings
    findings += _joint_findings(entries.values())
    if findings:  # what cannot be placed cannot be reached or fail either
        return Checked(None, findings)
    faults, findings = planned_faults(experiment, plans)
    findings = _reachability_findings(experiment, plans) + findings
    return Checked(None, findings) if findings else Checked(PlannedRun(experiment, plans, faults), [])


def own_findings(experiment: Experiment) -> list[Finding]:
    """What is wrong with applications by themselves, where the rest of the file cannot be used."""
    return [f for entry in experiment.entries().values() for f in application(entry.kind).own_findings(entry)]


def unused_findings(experiment: Experiment) -> list[Finding]:
    """Settings that have no effect, in any cell of a sweep."""
    entries = experiment.entries().values()
    return [finding for entry in entries for finding in application(entry.kind).unused_findings(entry)]


def _joint_findings(entries: Iterable[AppEntry]) -> list[Finding]:
    of_kind: dict[str, list[AppEntry]] = {}
    for entry in entries:
        of_kind.setdefault(entry.kind, []).append(entry)
    return [finding for kind, those in of_kind.items() for finding in application(kind).findings(those)]


def scenario_findings(experiment: Experiment) -> list[Finding]:
    """What is wrong with the network and the backend, whatever the applications are."""
    return (
        _protocol_findings(experiment)
        + _rate_findings(experiment)
        + _real_findings(experiment)
        + _core_findings(experiment)
    )


def _protocol_findings(experiment: Experiment) -> list[Finding]:
    routing, backend = experiment.routing, experiment.backend
    if isinstance(routing, Aodv) and routing.detection == "feedback" and backend != "sim":
        text = "a kernel does not tell which packets its link layer gave up"
        return [Finding(("routing", "detection"), text, "use detection: hello, or backend: sim")]
    candidates = ("netns", "sim") if backend == "auto" else (backend,)
    missing = [candidate for candidate in candidates if candidate not in routing.backends]
    if not missing:
        return []
    text = f"{routing.protocol} does not run on the backend {missing[0]}"
    hint = f"use backend: {listed(routing.backends)}, or protocol: olsr, which runs everywhere"
    return [Finding(("routing", "protocol"), text, hint)]


def _rate_findings(experiment: Experiment) -> list[Finding]:
    """In namespaces a disc is where an 802.11b radio is heard; it sends at a rate that such a radio has."""
    radio = experiment.topology.radio
    emulated = experiment.backend in ("netns", "auto")
    if not emulated or not isinstance(radio, DiscRadio) or radio.bandwidth / 1e6 in RATES:
        return []
    rate = radio.bandwidth / 1e6
    text = f"{rate:g} Mb/s is not a rate of 802.11b, which is what the backend netns emulates"
    return [Finding(("topology", "radio", "bandwidth"), text, RATES_HINT)]


def _real_findings(experiment: Experiment) -> list[Finding]:
    """What nobody here can know of, or do to, machines of their own."""
    findings = []
    if experiment.backend == "ssh":
        hosts = experiment.topology.hosts
        without = [node for node in experiment.topology.node_names if node not in hosts]
        if without:
            text = f"with backend ssh every node is a machine, and there is no entry for {', '.join(without)}"
            hint = f"write it like {without[0]}: {{host: 192.168.1.21}} (docs/nodes.md)"
            findings.append(Finding(("topology", "hosts"), text, hint))
        running = [
            name for name, node in experiment.topology.real_nodes().items() if node.daemon == "running"
        ]
        if isinstance(experiment.routing, Ours) and experiment.routing.authentication and running:
            text = f"the routing daemon of {running[0]} runs already, and does not get the run's key"
            findings.append(Finding(("routing", "authentication"), text, "use daemon: start for all nodes"))
    if experiment.backend in REMOTE:
        findings += [
            Finding(
                ("faults", index, "silence"),
                f"nobody can silence a radio with backend {experiment.backend}",
                "use a crash, or backend: netns",
            )
            for index, fault in enumerate(experiment.faults)
            if fault.kind == "silence"
        ]
    return findings


def _core_findings(experiment: Experiment) -> list[Finding]:
    if experiment.backend != "core":
        return []
    topology = experiment.topology
    findings = core_findings(topology.radio, topology.area)
    if topology.core is None:
        hint = "write it like core: {host: emulator.lab, user: me} (docs/core.md)"
        findings.append(Finding(("core",), "it is not said which host runs CORE", hint))
    return [Finding(("topology", *found.at), found.message, found.hint) for found in findings]


def _reachability_findings(experiment: Experiment, plans: Mapping[str, AppPlan]) -> list[Finding]:
    """Nodes that never move and are out of radio contact in the beginning stay out of it."""
    positions = experiment.topology.static_positions()
    if not positions or experiment.backend == "ssh":
        return []  # of real nodes nobody here knows who hears whom
    radio = experiment.topology.radio
    if not isinstance(radio, DiscRadio) and isinstance(radio.pathloss, LossTrace):
        return []  # links come and go, though nobody moves
    island = islands(network_at(experiment.topology, positions))
    if isinstance(radio, DiscRadio):
        why = f"hops of {radio.range:g} m do not connect them"
    else:
        why = f"no chain of links connects them at {radio.tx_power:g} dBm"
    return [finding for plan in plans.values() for finding in plan.cut_off(island, why)]
