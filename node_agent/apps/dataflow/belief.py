"""What a replica can know, by the deployment plan: the streams that pass it, and its neighbours.

``RECORDS`` describes the records of a dataflow; a test compares ``orchestrator.analytics`` with it.
"""

from msgspec import Struct

from node_agent.apps.dataflow.events import (
    DATAFLOW_KINDS,
    MOST_TUPLES,
    LinkCost,
    LinkLost,
    RouteDecision,
    RouteSwitch,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.faces.events import FACE_KINDS, FacesSeen, FacesTrue
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.telemetry.belief import AppScopes
from node_agent.telemetry.kinds import COUNTER, SIZE, TIME_NS, RecordKinds, Rule, tags_of

FILTERED, ABSORBED = "filtered", "absorbed"


class Scope(Struct, frozen=True):
    """What one replica can report about.

    ``makes``: streams that begin there. ``carries``: those that begin there or pass. ``senders`` and
    ``receivers``: replicas that tuples come from and go to, with siblings. ``outputs``: the downstream
    operators; ``nexts``: their replicas. ``delivers``: itself, if it is a sink. ``never_says``: reasons for
    which no tuple can be dropped there.
    """

    replica: str
    makes: tuple[str, ...]
    carries: tuple[str, ...]
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    nexts: tuple[str, ...]
    outputs: tuple[str, ...]
    delivers: tuple[str, ...]
    never_says: tuple[str, ...]


RULES: tuple[Rule, ...] = (
    Rule("stream", tags_of(TupleEmitted, FacesTrue), "origin", "makes"),
    Rule(
        "stream",
        tags_of(TupleSent, TupleReceived, TupleProcessed, TupleDelivered, TupleDropped, FacesSeen),
        "origin",
        "carries",
    ),
    Rule("sink", tags_of(TupleDelivered, FacesSeen), "replica", "delivers"),
    Rule("peer", tags_of(TupleReceived), "sender", "senders"),
    Rule("peer", tags_of(TupleSent, LinkCost, LinkLost), "to", "receivers"),
    Rule("peer", tags_of(TupleDropped, RouteSwitch, RouteDecision), "downstream", "outputs"),
    Rule("peer", tags_of(RouteSwitch, RouteDecision), "old", "nexts"),
    Rule("peer", tags_of(RouteSwitch, RouteDecision), "new", "nexts"),
    Rule("fate", tags_of(TupleDropped), "reason", "never_says", "not be"),
)
RECORDS = RecordKinds(
    events=(*DATAFLOW_KINDS, *FACE_KINDS),
    bounds={
        "born_ns": TIME_NS,
        "taken_ns": TIME_NS,
        "took_ns": TIME_NS,
        "births": (-(2**61), 2**61),
        "latency_ns": (-(2**61), 2**61),
        "tau": (0, 2**62),
        "tuples": (1, MOST_TUPLES),
        "size": SIZE,
        "sizes": SIZE,
        "refused": COUNTER,
        "migration": COUNTER,
        "count": COUNTER,
    },
    counted={"sizes": "tuples", "births": "tuples"},
    subject="replica",
    rules=RULES,
    words={
        "replica": "name a replica of another node",
        "stream": "name a stream that does not pass there",
        "sink": "deliver where there is no sink",
        "peer": "name a replica that nothing is exchanged with",
        "fate": "name a fate that no tuple has there",
    },
)


def scopes_of(plan: DeploymentPlan) -> AppScopes:
    """Returns the scopes of all replicas. Raises KeyError or ValueError if the plan's query is no graph."""
    scopes: dict[str, dict[str, Scope]] = {}
    for moving in plan.moving:  # who orders an operator's migrations reports about these only
        (replica,) = plan.of(moving.operator)
        silent = Scope(replica.id, (), (), (), (), (), (), (), ())
        scopes.setdefault(moving.coordinator, {})[replica.id] = silent
        for host in moving.hosts:
            scopes.setdefault(host, {})[replica.id] = scope_of(replica, plan)
    for replica in plan.replicas:
        scopes.setdefault(replica.node, {})[replica.id] = scope_of(replica, plan)
    return AppScopes("query", scopes)


def scope_of(replica: Replica, plan: DeploymentPlan) -> Scope:
    query, name = plan.query, replica.operator
    origins = query.origins()
    upstream, outputs = query.upstream(name), query.downstream(name)
    passing = [origin for operator in upstream for origin in origins[operator]]
    siblings = [other.id for other in plan.of(name) if other.id != replica.id]
    nexts = [other.id for operator in outputs for other in plan.of(operator)]
    is_sink = not outputs
    makes = query.makes(name)
    unsaid = [FILTERED] * (not is_sink) + [ABSORBED] * (not (upstream and makes))
    return Scope(
        replica=replica.id,
        makes=makes,
        carries=tuple(dict.fromkeys((*passing, *origins[name]))),
        senders=(*(other.id for operator in upstream for other in plan.of(operator)), *siblings),
        receivers=(*nexts, *siblings),
        nexts=tuple(nexts),
        outputs=outputs,
        delivers=(replica.id,) if is_sink else (),
        never_says=tuple(unsaid),
    )
