"""What no single section can tell: whether replicas, placement, query and topology go together."""

from collections.abc import Iterable, Mapping
from math import inf

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.faces.checks import face_findings
from orchestrator.apps.dataflow.planning.buffers import shortages
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.placement import asked_for, deployment_plan, hosts, replica_counts
from orchestrator.apps.dataflow.planning.prospect import radio_range
from orchestrator.apps.dataflow.spec.delivery import Delivery
from orchestrator.apps.dataflow.spec.placement import AUTO, ColocatePlacement, ExplicitPlacement
from orchestrator.apps.dataflow.spec.query import Dataflow
from orchestrator.planning.distances import network_at
from orchestrator.planning.faults import victim_of
from orchestrator.radio.rates import RATES
from orchestrator.results.expectations import misfits
from orchestrator.results.inputs import OLD_KIND, OLD_NAME
from orchestrator.spec.core import core_findings
from orchestrator.spec.experiment import REMOTE, Experiment
from orchestrator.spec.faults import Fault
from orchestrator.spec.pathloss import LossTrace
from orchestrator.spec.problems import Finding, Place, did_you_mean, listed, shown
from orchestrator.spec.radio import RATES_HINT, DiscRadio
from orchestrator.spec.routing import Aodv, Ours


def semantic_findings(experiment: Experiment) -> list[Finding]:
    findings = placement_findings(experiment) + _backend_findings(experiment) + _window_findings(experiment)
    findings += face_findings(experiment) + _expectation_findings(experiment)
    # A plan exists only for what can be placed.
    return findings or reachability_findings(experiment) + fault_findings(experiment)


def _expectation_findings(experiment: Experiment) -> list[Finding]:
    apps = {OLD_NAME: OLD_KIND}
    return [
        Finding(("expect", each.place), each.text, each.hint) for each in misfits(experiment.expect, apps)
    ]


def _backend_findings(experiment: Experiment) -> list[Finding]:
    return (
        _protocol_findings(experiment)
        + _rate_findings(experiment)
        + _camera_findings(experiment)
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


def _camera_findings(experiment: Experiment) -> list[Finding]:
    if experiment.backend != "sim" or all(o.kind != "camera" for o in experiment.dataflow().operators):
        return []
    text = "a camera takes its pictures in real time, and sim runs in virtual time"
    return [Finding(("backend",), text, "use backend: netns, or a video or pictures as source")]


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


def _window_findings(experiment: Experiment) -> list[Finding]:
    """Where nothing may be lost, whatever a window needs must be kept until it is done."""
    query = experiment.dataflow()
    if query.reliability == "best_effort":
        return []
    findings = []
    for short in shortages(query, experiment.delivery.limits()):
        needed, unit = f"{short.need.tuples:,} tuples", "bytes of them" if short.in_bytes else ""
        text = (
            f'windows of "{short.need.window}" need {needed} of "{short.upstream}" at once, '
            f'and for "{short.downstream}" only {short.room:,} {unit}'.rstrip()
            + " are kept"
        )
        written_out = isinstance(experiment.query, Dataflow)
        at: Place = ("delivery", "buffer_bytes" if short.in_bytes else "buffer")
        if short.own and not short.in_bytes and written_out:
            at = ("query", "operators", short.downstream, "buffers", short.upstream)
        findings.append(Finding(at, text, "use a larger buffer, a smaller window, or overflow: spill"))
    return findings


def unheeded_findings(experiment: Experiment) -> list[Finding]:
    """Settings that have no effect, in any cell of a sweep."""
    paths = experiment.sweep
    varied = [path for path in paths if path.partition(".")[0] == "delivery"]
    promises = experiment.dataflow().reliability != "best_effort" or "query.reliability" in paths
    if promises or not (varied or experiment.delivery != Delivery()):
        return []
    text = "has no effect: the query's reliability is best_effort, which keeps next to nothing"
    hint = "give the query reliability: exactly_once, or use the buffers of its operators"
    return [Finding(("sweep", varied[0]) if varied else ("delivery",), text, hint)]


def placement_findings(experiment: Experiment) -> list[Finding]:
    findings = _replica_findings(experiment) or _auto_findings(experiment)
    if isinstance(experiment.placement, ExplicitPlacement):
        return findings + _explicit_findings(experiment, experiment.placement)
    return findings or _room_findings(experiment)


def _replica_findings(experiment: Experiment) -> list[Finding]:
    if not isinstance(experiment.replicas, dict):
        return []
    query = experiment.dataflow()
    inner = query.inner()
    findings = []
    for name, count in experiment.replicas.items():
        at = ("replicas", name)
        if name not in query.names():
            hint = did_you_mean(name, inner) or f"the query has {listed(inner)}"
            findings.append(Finding(at, f"the query has no operator {shown(name)}", hint))
        elif name not in inner and count != 1:
            findings.append(Finding(at, f"{shown(name)} is a source or sink: it has exactly one replica"))
    return findings


def _auto_findings(experiment: Experiment) -> list[Finding]:
    """A number of replicas is derived from how far the radio reaches, so it must follow from distance."""
    replicas = experiment.replicas
    asked = {(name,): k for name, k in replicas.items()} if isinstance(replicas, dict) else {(): replicas}
    places = [at for at, count in asked.items() if count == AUTO]
    real = experiment.backend == "ssh"
    if not places or not (real or radio_range(experiment.topology) is None):
        return []
    whose = "nobody knows that of real ones" if real else "this radio has none"
    text = f"auto is derived from the radio's range, and {whose}"
    return [Finding(("replicas", *at), text, "write a number") for at in places]


def _room_findings(experiment: Experiment) -> list[Finding]:
    counts = replica_counts(experiment)
    placed = hosts(experiment, counts)
    needed, available = sum(counts.values()), len(experiment.topology.node_names)
    if len(placed) == needed:
        return []
    homeless = [f"{name}/{i}" for name, k in counts.items() for i in range(k) if (name, i) not in placed]
    given = {role for roles in experiment.topology.roles().values() for role in roles if role in counts}
    if given:
        text = f"no node is left for {homeless[0]}, with roles as they are ({', '.join(sorted(given))})"
        return [Finding(("replicas",), text, "give more nodes the role, or use fewer replicas")]
    if isinstance(experiment.placement, ColocatePlacement):
        needs = cpu_needs(experiment.dataflow())
        shares = ", ".join(f"{name} {needs[name]:.2g}" for name in experiment.dataflow().inner())
        text = f"no node has room for {homeless[0]} (cores that a replica needs: {shares})"
        return [Finding(("replicas",), text, "use fewer replicas, more nodes or nodes of more capacity")]
    sum_of = " + ".join(f"{name} {count}" for name, count in counts.items())
    inner = len(experiment.dataflow().inner())
    ends = len(counts) - inner
    most = (available - ends) // inner if inner else 0
    hint = f"at most {most} replicas of each operator fit" if most > 0 else "use more nodes"
    text = f"{needed} nodes are needed, one for each replica ({sum_of}), but there are {available}"
    return [Finding(("replicas",), text, hint)]


def _explicit_findings(experiment: Experiment, placement: ExplicitPlacement) -> list[Finding]:
    """Operators may share a node here: who writes it down wants it so."""
    names = experiment.dataflow().names()
    nodes = experiment.topology.node_names
    findings: list[Finding] = []
    for operator, chosen in placement.nodes.items():
        at = ("placement", "nodes", operator)
        if operator not in names:
            hint = did_you_mean(operator, names) or f"the query has {listed(names)}"
            findings.append(Finding(at, f"the query has no operator {shown(operator)}", hint))
            continue
        for index, host in enumerate(chosen):
            if host not in nodes:
                hint = did_you_mean(host, nodes)
                findings.append(Finding((*at, index), f"there is no node {shown(host)}", hint))
            elif host in chosen[:index]:
                text = f"{shown(host)} is listed twice; replicas of one operator need different nodes"
                findings.append(Finding((*at, index), text))
        wanted = asked_for(experiment, operator)
        if isinstance(wanted, int) and len(chosen) < wanted:
            text = f"{operator} has {wanted} replicas, but {len(chosen)} listed here"
            findings.append(Finding(at, text, "list one node for each replica"))
        elif not chosen:
            findings.append(Finding(at, f"no node for {shown(operator)}", "list at least one"))
    for operator in names:
        if operator not in placement.nodes:
            text = f"no node for {shown(operator)}"
            findings.append(Finding(("placement", "nodes"), text, "explicit placement names every operator"))
    return findings


def fault_findings(experiment: Experiment) -> list[Finding]:
    plan = deployment_plan(experiment)
    findings: list[Finding] = []
    until: dict[tuple[str, str], float] = {}
    for index, fault in sorted(enumerate(experiment.faults), key=lambda numbered: numbered[1].at):
        found = _fault_findings(experiment, plan, fault)
        node = victim_of(fault, plan)
        if not found and node is not None:
            if fault.at < until.get((fault.kind, node), 0.0):
                text = f"{node} is down already then: a {fault.kind} of it has not ended yet"
                found = [Finding(("at",), text, "let the first one end before, by its for")]
            until[fault.kind, node] = inf if fault.seconds is None else fault.at + fault.seconds
        findings += [Finding(("faults", index, *f.at), f.message, f.hint) for f in found]
    return findings


def _fault_findings(experiment: Experiment, plan: DeploymentPlan, fault: Fault) -> list[Finding]:
    """Of one fault by itself, at places within it."""
    victim, query = fault.victim, plan.query
    findings = []
    if fault.at >= experiment.duration:
        text = f"{fault.at:g} s is not within the {experiment.duration:g} s of the measurement"
        findings.append(Finding(("at",), text))
    if victim.operator is not None and victim.operator not in query.names():
        hint = did_you_mean(victim.operator, query.names()) or f"the query has {listed(query.names())}"
        text = f"the query has no operator {shown(victim.operator)}"
        return [*findings, Finding((fault.kind, "operator"), text, hint)]
    node = victim_of(fault, plan)
    if node is None:
        count = len(plan.of(str(victim.operator)))
        text = f"{victim.operator} has {count} replicas, numbered from 0: there is no {victim.replica}"
        return [*findings, Finding((fault.kind, "replica"), text)]
    if node not in experiment.topology.node_names:
        hint = did_you_mean(node, experiment.topology.node_names)
        return [*findings, Finding((fault.kind, "node"), f"there is no node {shown(node)}", hint)]
    ends = [r.operator for r in plan.on(node) if r.operator not in query.inner()]
    if fault.kind == "crash" and ends:
        text = f"{node} has the {listed(ends)}, and a source or sink that begins anew repeats its stream"
        findings.append(Finding((fault.kind,), text, "crash a replica in between, or silence the node"))
    return findings


def reachability_findings(experiment: Experiment) -> list[Finding]:
    """Among nodes that never move, an operator out of radio contact with the sink stays out of it."""
    positions = experiment.topology.static_positions()
    if not positions or experiment.backend == "ssh":
        return []  # of real nodes nobody here knows who hears whom
    plan = deployment_plan(experiment)
    radio = experiment.topology.radio
    if not isinstance(radio, DiscRadio) and isinstance(radio.pathloss, LossTrace):
        return []  # links come and go, though nobody moves
    island = islands(network_at(experiment.topology, positions))
    if isinstance(radio, DiscRadio):
        why = f"hops of {radio.range:g} m do not connect them"
    else:
        why = f"no chain of links connects them at {radio.tx_power:g} dBm"
    return [finding for sink in plan.query.sinks() for finding in _cut_off(plan, sink, island, why)]


def _cut_off(plan: DeploymentPlan, sink: str, island: Mapping[str, int], why: str) -> list[Finding]:
    """Relays can be any node, so it is enough that one replica of each operator shares the sink's island."""
    (home,) = plan.of(sink)
    lost = [
        f"{operator} ({', '.join(replica.node for replica in plan.of(operator))})"
        for operator in plan.query.names()
        if sink in plan.query.reachable_from([operator])
        and all(island[replica.node] != island[home.node] for replica in plan.of(operator))
    ]
    if not lost:
        return []
    text = (
        f"the sink {sink} ({home.node}) can never be reached from {listed(lost)}: "
        f"nodes do not move, and {why}"
    )
    hint = "use a longer range or more power, other positions or another placement"
    return [Finding(("placement",), text, hint)]


def islands(neighbours: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """For each node the number of the group it can talk to over any number of hops."""
    island: dict[str, int] = {}
    for number, start in enumerate(neighbours):
        frontier = [] if start in island else [start]
        while frontier:
            node = frontier.pop()
            if node not in island:
                island[node] = number
                frontier.extend(other for other in neighbours[node] if other not in island)
    return island
