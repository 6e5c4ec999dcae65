"""What no single section can tell: whether replicas, placement, query and topology go together."""

from collections.abc import Iterable, Mapping
from math import hypot

from node_agent.model.plan import DeploymentPlan
from orchestrator.mobility.trace import Position
from orchestrator.planning.placement import deployment_plan
from orchestrator.radio.rates import RATES
from orchestrator.spec.experiment import Experiment, ExplicitPlacement
from orchestrator.spec.pathloss import LossTrace
from orchestrator.spec.problems import Finding, did_you_mean, listed, shown
from orchestrator.spec.radio import RATES_HINT, DiscRadio


def semantic_findings(experiment: Experiment) -> list[Finding]:
    findings = placement_findings(experiment) + _backend_findings(experiment)
    # A plan exists only for what can be placed.
    return findings or reachability_findings(experiment)


def _backend_findings(experiment: Experiment) -> list[Finding]:
    """In namespaces a disc is where an 802.11b radio is heard; it sends at a rate that such a radio has."""
    radio = experiment.topology.radio
    if experiment.backend == "sim" or not isinstance(radio, DiscRadio) or radio.bandwidth / 1e6 in RATES:
        return []
    rate, backend = radio.bandwidth / 1e6, experiment.backend
    text = f"{rate:g} Mb/s is not a rate of 802.11b, which is what the backend {backend} emulates"
    return [Finding(("topology", "radio", "bandwidth"), text, RATES_HINT)]


def placement_findings(experiment: Experiment) -> list[Finding]:
    findings = _replica_findings(experiment)
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


def _room_findings(experiment: Experiment) -> list[Finding]:
    counts = experiment.replica_counts()
    needed, available = sum(counts.values()), len(experiment.topology.node_names)
    if needed <= available:
        return []
    sum_of = " + ".join(f"{name} {count}" for name, count in counts.items())
    inner = len(experiment.dataflow().inner())
    ends = len(counts) - inner
    most = (available - ends) // inner if inner else 0
    hint = f"at most {most} replicas of each operator fit" if most > 0 else "use more nodes"
    text = f"{needed} nodes are needed, one for each replica ({sum_of}), but there are {available}"
    return [Finding(("replicas",), text, hint)]


def _explicit_findings(experiment: Experiment, placement: ExplicitPlacement) -> list[Finding]:
    counts = experiment.replica_counts()
    nodes = experiment.topology.node_names
    findings: list[Finding] = []
    used: dict[str, str] = {}
    for operator, hosts in placement.nodes.items():
        at = ("placement", "nodes", operator)
        if operator not in counts:
            hint = did_you_mean(operator, counts) or f"the query has {listed(counts)}"
            findings.append(Finding(at, f"the query has no operator {shown(operator)}", hint))
            continue
        for index, host in enumerate(hosts):
            if host not in nodes:
                hint = did_you_mean(host, nodes)
                findings.append(Finding((*at, index), f"there is no node {shown(host)}", hint))
            elif host in used:
                text = f"{shown(host)} is taken by {used[host]} already; a node hosts one replica"
                findings.append(Finding((*at, index), text))
            used.setdefault(host, operator)
        if len(hosts) < counts[operator]:
            text = f"{operator} has {counts[operator]} replicas, but {len(hosts)} listed here"
            findings.append(Finding(at, text, "list one node for each replica"))
    for operator in counts:
        if operator not in placement.nodes:
            text = f"no node for {shown(operator)}"
            findings.append(Finding(("placement", "nodes"), text, "explicit placement names every operator"))
    return findings


def reachability_findings(experiment: Experiment) -> list[Finding]:
    """Among nodes that never move, an operator out of radio contact with the sink stays out of it."""
    positions = experiment.topology.static_positions()
    if not positions:
        return []
    plan = deployment_plan(experiment)
    radio = experiment.topology.radio
    if isinstance(radio, DiscRadio):
        island = islands(_in_range(positions, radio.range))
        why = f"hops of {radio.range:g} m do not connect them"
    elif isinstance(radio.pathloss, LossTrace):
        return []  # links come and go, though nobody moves
    else:
        # Imported here: numpy comes with it, which is worth its time only where it is needed.
        from orchestrator.radio.from_spec import air_settings
        from orchestrator.radio.survey import survey

        choice, mac = air_settings(experiment.topology)
        island = islands(survey(choice.radio(), mac, positions).links)
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


def _in_range(positions: Mapping[str, Position], reach: float) -> dict[str, list[str]]:
    return {
        node: [other for other, (ox, oy) in positions.items() if hypot(ox - x, oy - y) <= reach]
        for node, (x, y) in positions.items()
    }


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
