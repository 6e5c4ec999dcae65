"""Checks whether a dataflow's query, replicas and placement fit together and fit the scenario."""

from node_agent.extensions import ExtensionError
from node_agent.extensions.files import short_name
from orchestrator.apps.dataflow.faces.checks import face_findings
from orchestrator.apps.dataflow.planning.buffers import shortages
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.migrations import migration_findings
from orchestrator.apps.dataflow.planning.placement import Arrangement, arrange, asked_for
from orchestrator.apps.dataflow.planning.prospect import radio_range
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.delivery import Delivery
from orchestrator.apps.dataflow.spec.placement import (
    AUTO,
    ColocatePlacement,
    ExplicitPlacement,
    NearPlacement,
)
from orchestrator.apps.dataflow.spec.query import Dataflow
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, listed, shown


def checked_arrangement(setting: Setting) -> Arrangement:
    """Raises Unusable with everything that is wrong."""
    findings, arrangement = _placed(setting)
    findings += _camera_findings(setting) + _window_findings(setting) + face_findings(setting)
    findings += migration_findings(setting, None if arrangement is None else arrangement.plan(setting.query))
    if findings or arrangement is None:
        raise Unusable(*findings)
    return arrangement


def placement_findings(setting: Setting) -> list[Finding]:
    return _placed(setting)[0]


def _placed(setting: Setting) -> tuple[list[Finding], Arrangement | None]:
    findings = _replica_findings(setting) or _auto_findings(setting)
    if isinstance(setting.section.placement, ExplicitPlacement):
        findings += _explicit_findings(setting, setting.section.placement)
        return (findings, None) if findings else ([], arrange(setting))
    if findings:
        return findings, None
    try:
        arrangement = arrange(setting)
    except ExtensionError as error:
        text = f"the policy {short_name(setting.placement_policy())} cannot be used: {error}"
        return [Finding(setting.at("placement", "policy"), text)], None
    return _room_findings(setting, arrangement), arrangement


def _camera_findings(setting: Setting) -> list[Finding]:
    if not setting.scenario.traits.virtual_time or all(o.kind != "camera" for o in setting.query.operators):
        return []
    text = f"a camera takes its pictures in real time, and {setting.scenario.backend} runs in virtual time"
    return [Finding(("backend",), text, "use backend: netns, or a video or pictures as source")]


def _window_findings(setting: Setting) -> list[Finding]:
    """Reports buffers too small for a window: without loss, all its tuples are kept until it is done."""
    query = setting.query
    if query.reliability == "best_effort":
        return []
    findings = []
    for short in shortages(query, setting.section.delivery.limits()):
        needed, unit = f"{short.need.tuples:,} tuples", "bytes of them" if short.in_bytes else ""
        text = (
            f'windows of "{short.need.window}" need {needed} of "{short.upstream}" at once, '
            f'and for "{short.downstream}" only {short.room:,} {unit}'.rstrip()
            + " are kept"
        )
        written_out = isinstance(setting.section.query, Dataflow)
        at = setting.at("delivery", "buffer_bytes" if short.in_bytes else "buffer")
        if short.own and not short.in_bytes and written_out:
            at = setting.at("query", "operators", short.downstream, "buffers", short.upstream)
        findings.append(Finding(at, text, "use a larger buffer, a smaller window, or overflow: spill"))
    return findings


def unused_findings(setting: Setting) -> list[Finding]:
    """Settings that have no effect, in any cell of a sweep."""
    paths = setting.entry.varied
    varied = [path for path in paths if path.partition(".")[0] == "delivery"]
    promises = setting.query.reliability != "best_effort" or "query.reliability" in paths
    if promises or not (varied or setting.section.delivery != Delivery()):
        return []
    text = "has no effect: the query's reliability is best_effort, which keeps next to nothing"
    hint = "give the query reliability: exactly_once, or use the buffers of its operators"
    start = "".join(f"{part}." for part in setting.entry.prefix)
    return [Finding(("sweep", start + varied[0]) if varied else setting.at("delivery"), text, hint)]


def _replica_findings(setting: Setting) -> list[Finding]:
    if not isinstance(setting.section.replicas, dict):
        return []
    query = setting.query
    inner = query.inner()
    findings = []
    for name, count in setting.section.replicas.items():
        at = setting.at("replicas", name)
        if name not in query.names():
            hint = did_you_mean(name, inner) or f"the query has {listed(inner)}"
            findings.append(Finding(at, f"the query has no operator {shown(name)}", hint))
        elif name not in inner and count != 1:
            findings.append(Finding(at, f"{shown(name)} is a source or sink: it has exactly one replica"))
    return findings


def _auto_findings(setting: Setting) -> list[Finding]:
    """Reports ``auto`` for radios without a range, from which the number of replicas is derived."""
    replicas = setting.section.replicas
    asked = {(name,): k for name, k in replicas.items()} if isinstance(replicas, dict) else {(): replicas}
    places = [at for at, count in asked.items() if count == AUTO]
    real = setting.scenario.traits.own_machines
    if not places or not (real or radio_range(setting.topology) is None):
        return []
    whose = "nobody knows that of real ones" if real else "this radio has none"
    text = f"auto is derived from the radio's range, and {whose}"
    return [Finding(setting.at("replicas", *at), text, "write a number") for at in places]


def _room_findings(setting: Setting, arrangement: Arrangement) -> list[Finding]:
    counts, placed = arrangement.counts, arrangement.hosts
    needed, available = sum(counts.values()), len(setting.topology.node_names)
    if len(placed) == needed:
        return []
    homeless = [f"{name}/{i}" for name, k in counts.items() for i in range(k) if (name, i) not in placed]
    given = {role for roles in setting.topology.roles().values() for role in roles if role in counts}
    if given:
        text = f"no node is left for {homeless[0]}, with roles as they are ({', '.join(sorted(given))})"
        return [Finding(setting.at("replicas"), text, "give more nodes the role, or use fewer replicas")]
    if isinstance(setting.section.placement, ColocatePlacement | NearPlacement):
        needs = cpu_needs(setting.query)
        if not any(needs[name] for name in setting.query.inner()):
            alone = " to itself" if isinstance(setting.section.placement, ColocatePlacement) else ""
            text = (
                f"no node is left for {homeless[0]}: every source and sink has a node{alone}, and replicas "
                "of one operator never share one"
            )
            return [Finding(setting.at("replicas"), text, "use more nodes or fewer replicas")]
        shares = ", ".join(f"{name} {needs[name]:.2g}" for name in setting.query.inner())
        text = f"no node has room for {homeless[0]} (cores that a replica needs: {shares})"
        return [
            Finding(setting.at("replicas"), text, "use fewer replicas, more nodes or nodes of more capacity")
        ]
    sum_of = " + ".join(f"{name} {count}" for name, count in counts.items())
    inner = len(setting.query.inner())
    ends = len(counts) - inner
    most = (available - ends) // inner if inner else 0
    hint = f"at most {most} replicas of each operator fit" if most > 0 else "use more nodes"
    text = f"{needed} nodes are needed, one for each replica ({sum_of}), but there are {available}"
    return [Finding(setting.at("replicas"), text, hint)]


def _explicit_findings(setting: Setting, placement: ExplicitPlacement) -> list[Finding]:
    """Checks listed nodes; operators may share a node, as the user wrote it so."""
    names = setting.query.names()
    nodes = setting.topology.node_names
    findings: list[Finding] = []
    for operator, chosen in placement.nodes.items():
        at = setting.at("placement", "nodes", operator)
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
        wanted = asked_for(setting, operator)
        if isinstance(wanted, int) and len(chosen) < wanted:
            text = f"{operator} has {wanted} replicas, but {len(chosen)} listed here"
            findings.append(Finding(at, text, "list one node for each replica"))
        elif not chosen:
            findings.append(Finding(at, f"no node for {shown(operator)}", "list at least one"))
    for operator in names:
        if operator not in placement.nodes:
            text = f"no node for {shown(operator)}"
            findings.append(
                Finding(setting.at("placement", "nodes"), text, "explicit placement names every operator")
            )
    return findings
