"""Computes, from a dataflow and its scenario, the few aggregates that its number of replicas
is derived from.
"""

from statistics import median_low

from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.drawn_networks import Placing
from orchestrator.apps.dataflow.planning.replication import Prospect
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.placement import DEFAULT, PLACEMENT_POLICIES
from orchestrator.mobility.generate import generate_trace
from orchestrator.spec.radio import DiscRadio
from orchestrator.spec.topology import Topology

_DELIVERED = 0.5
"""The range is the distance at which this share of full frames arrives."""


def prospect_for(setting: Setting, operator: str) -> Prospect:
    """Returns the aggregates for the longest way from a source to a sink through ``operator``. Needs a radio
    that has a range.
    """
    topology = setting.topology
    reach = radio_range(topology)
    assert reach is not None, "checked when the file was read"
    speed = _mean_speed(setting)
    return Prospect(
        nodes=len(topology.node_names),
        width_m=topology.area.width,
        height_m=topology.area.height,
        range_m=reach,
        speed=speed,
        placing=_placing(setting, operator, speed),
        settle_s=setting.section.switching.period
        + setting.scenario.routing.notices_after(setting.scenario.traits.link_feedback),
    )


def radio_range(topology: Topology) -> float | None:
    """Returns the range; None if losses are looked up and do not follow from distance."""
    if isinstance(topology.radio, DiscRadio):
        return topology.radio.range
    # Imported here because it imports numpy, which takes time.
    from orchestrator.planning.radio_outlook import reach

    found = reach(topology)
    return None if found is None else found.ranges_m.get(_DELIVERED)


def _mean_speed(setting: Setting) -> float:
    scenario, topology = setting.scenario, setting.topology
    stated = topology.mean_speed()
    if stated is not None:
        return stated
    from orchestrator.mobility.statistics import mean_speed

    seconds = scenario.warmup + scenario.duration
    return mean_speed(generate_trace(topology, scenario.seed, seconds), 0.0, seconds)


def _placing(setting: Setting, operator: str, speed: float) -> Placing:
    """Returns how the longest way is placed: at random if the policy depends on more than CPU and distance,
    or is not Rove's own.
    """
    name = setting.placement_policy()
    known = PLACEMENT_POLICIES.is_builtin(name) and PLACEMENT_POLICIES[name].on_any_nodes
    needs = cpu_needs(setting.query)
    return Placing(
        policy=PLACEMENT_POLICIES[name if known else DEFAULT],
        needs=tuple(needs[name] for name in _longest_way(setting.query, operator)),
        cores=median_low(setting.topology.cores().values()),
        stays=speed == 0.0,
    )


def _longest_way(query: Query, operator: str) -> list[str]:
    """Returns a source, the operators on the longest way from it through this one, and a sink."""
    above: dict[str, list[str]] = {}
    for name in query.topological():
        above[name] = [*max((above[up] for up in query.upstream(name)), key=len, default=[]), name]
    below: dict[str, list[str]] = {}
    for name in reversed(query.topological()):
        below[name] = [name, *max((below[down] for down in query.downstream(name)), key=len, default=[])]
    return [*above[operator], *below[operator][1:]]
