"""Computes, from a dataflow and its scenario, the few aggregates that its number of replicas
is derived from.
"""

from orchestrator.apps.dataflow.planning.replication import Prospect
from orchestrator.apps.dataflow.setting import Setting
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
    return Prospect(
        nodes=len(topology.node_names),
        width_m=topology.area.width,
        height_m=topology.area.height,
        range_m=reach,
        speed=_mean_speed(setting),
        operators=_operators_on_the_way(setting, operator),
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


def _operators_on_the_way(setting: Setting, operator: str) -> int:
    """Counts the operators between source and sink on the longest way through it, including itself."""
    query = setting.query
    inner = frozenset(query.inner())
    above: dict[str, int] = {}
    for name in query.topological():
        above[name] = max((above[up] for up in query.upstream(name)), default=0) + (name in inner)
    below: dict[str, int] = {}
    for name in reversed(query.topological()):
        below[name] = max((below[down] for down in query.downstream(name)), default=0) + (name in inner)
    return above[operator] + below[operator] - 1
