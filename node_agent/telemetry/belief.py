"""Whose word a record can be: a node is believed only about itself, and only what its replicas can know.

The directory that a segment lies in says who wrote it; the deployment plan says which replicas that node has,
which streams pass them and with whom they exchange tuples. ``RULES`` is the one definition: ``Writer``
applies it line by line, ``orchestrator.analytics.belief`` to columns.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.model.telemetry import (
    KINDS,
    FacesSeen,
    FacesTrue,
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
from node_agent.telemetry.records import tag_of

FILTERED, ABSORBED = "filtered", "absorbed"


class Scope(Struct, frozen=True):
    """What one replica can tell of.

    ``makes``: streams that begin there; ``carries``: those that begin there or pass. ``senders`` and
    ``receivers`` are replicas that tuples come from and go to, siblings among them; ``nexts`` those of the
    operators behind it, the ``outputs``. ``delivers``: itself, if it is a sink. ``never_says``: reasons for
    which no tuple can end there.
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


class Rule(NamedTuple):
    """In records of ``kinds``, ``field`` must be, or must not be, among the scope's names; null may be."""

    reason: str
    kinds: tuple[str, ...]
    field: str
    among: str
    must: Literal["be", "not be"] = "be"


def _tags(*kinds: type[Any]) -> tuple[str, ...]:
    return tuple(map(tag_of, kinds))


OTHER_RUN, OTHER_NODE, OTHER_REPLICA = "run", "node", "replica"
WORDS = {
    OTHER_RUN: "name another run",
    OTHER_NODE: "name another node",
    OTHER_REPLICA: "name a replica of another node",
    "stream": "name a stream that does not pass there",
    "sink": "deliver where there is no sink",
    "peer": "name a replica that nothing is exchanged with",
    "fate": "name a fate that no tuple has there",
}
"""What records did that were refused, by reason."""

RULES: tuple[Rule, ...] = (
    Rule("stream", _tags(TupleEmitted, FacesTrue), "origin", "makes"),
    Rule(
        "stream",
        _tags(TupleSent, TupleReceived, TupleProcessed, TupleDelivered, TupleDropped, FacesSeen),
        "origin",
        "carries",
    ),
    Rule("sink", _tags(TupleDelivered, FacesSeen), "replica", "delivers"),
    Rule("peer", _tags(TupleReceived), "sender", "senders"),
    Rule("peer", _tags(TupleSent, LinkCost, LinkLost), "to", "receivers"),
    Rule("peer", _tags(TupleDropped, RouteSwitch, RouteDecision), "downstream", "outputs"),
    Rule("peer", _tags(RouteSwitch, RouteDecision), "old", "nexts"),
    Rule("peer", _tags(RouteSwitch, RouteDecision), "new", "nexts"),
    Rule("fate", _tags(TupleDropped), "reason", "never_says", "not be"),
)
_OF_KIND = {tag_of(kind): [rule for rule in RULES if tag_of(kind) in rule.kinds] for kind in KINDS}


class Writer(Struct, frozen=True):
    """The node that a directory of segments belongs to, in its run."""

    run: str
    node: str
    scopes: dict[str, Scope]

    def refusal(self, record: Any) -> str:
        """Why ``record`` cannot be this node's; empty if it can."""
        if record.run != self.run:
            return OTHER_RUN
        if record.node != self.node:
            return OTHER_NODE
        if record.replica is None:
            return ""
        scope = self.scopes.get(record.replica)
        if scope is None:
            return OTHER_REPLICA
        for rule in _OF_KIND.get(record.kind, ()):
            named = getattr(record, rule.field)
            if named is not None and (named in getattr(scope, rule.among)) != (rule.must == "be"):
                return rule.reason
        return ""


def writers(run: str, nodes: Iterable[str], plan: DeploymentPlan) -> dict[str, Writer]:
    """By node. Raises KeyError or ValueError if the plan's query is no graph."""
    scopes = [(replica.node, scope_of(replica, plan)) for replica in plan.replicas]
    return {
        node: Writer(run, node, {scope.replica: scope for at, scope in scopes if at == node})
        for node in nodes
    }


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
