"""From a dataflow and its scenario to the few aggregates that its number of replicas is derived from."""

from orchestrator.apps.dataflow.planning.replication import Prospect
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.spec.mobility import Static
from orchestrator.spec.radio import DiscRadio
from orchestrator.spec.recorded import RecordedTrace
from orchestrator.spec.routing import Aodv, GroundTruth, LinkStateProtocol
from orchestrator.spec.topology import Topology

_HELLOS_MISSED = 3
"""After so many a link is taken for lost, where no validity time is given."""
_DELIVERED = 0.5
"""The range is where this share of full frames arrives."""


def prospect_for(setting: Setting, operator: str) -> Prospect:
    """Of the longest way from a source to a sink through ``operator``. Needs a radio that has a range."""
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
        settle_s=setting.section.switching.period + _detection_s(setting),
    )


def radio_range(topology: Topology) -> float | None:
    """None where losses are looked up and do not follow from distance."""
    if isinstance(topology.radio, DiscRadio):
        return topology.radio.range
    # Imported here: numpy comes with it, which is worth its time only where it is needed.
    from orchestrator.planning.radio_outlook import reach

    found = reach(topology)
    return None if found is None else found.ranges_m.get(_DELIVERED)


def _mean_speed(setting: Setting) -> float:
    scenario, topology, mobility = setting.scenario, setting.topology, setting.topology.mobility
    if isinstance(mobility, Static):
        return 0.0
    if not isinstance(mobility, RecordedTrace):
        return mobility.speed
    from orchestrator.mobility.statistics import mean_speed

    trace = mobility.read(topology.node_names, topology.area)
    return mean_speed(trace, 0.0, scenario.warmup + scenario.duration)


def _detection_s(setting: Setting) -> float:
    """How long routing takes to notice that a link is gone."""
    match setting.scenario.routing:
        case LinkStateProtocol(hello_validity=validity):
            return validity
        case GroundTruth():
            return 0.0
        case Aodv() as aodv if aodv.detection_on(setting.scenario.backend) == "feedback":
            return 0.0
        case slow:
            return _HELLOS_MISSED * slow.hello


def _operators_on_the_way(setting: Setting, operator: str) -> int:
    """Operators between source and sink on the longest way through it, itself included."""
    query = setting.query
    inner = frozenset(query.inner())
    above: dict[str, int] = {}
    for name in query.topological():
        above[name] = max((above[up] for up in query.upstream(name)), default=0) + (name in inner)
    below: dict[str, int] = {}
    for name in reversed(query.topological()):
        below[name] = max((below[down] for down in query.downstream(name)), default=0) + (name in inner)
    return above[operator] + below[operator] - 1
