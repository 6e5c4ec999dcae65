"""Draws by seed which query runs, on which nodes, and which faults happen when."""

from collections.abc import Sequence
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Overflow
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query, Reliability
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow, UnitRule
from node_agent.apps.dataflow.switching.exchange import Mode

MILLISECOND = 1_000_000
OVERFLOWS = (Overflow.BLOCK, Overflow.SPILL, Overflow.DROP_OLDEST)
COUNT = 120
RATE = 10.0
FAULTS_FOR = 12.0
POLICIES = ("shortest_path", "shortest_path", "round_robin", "weighted", "power_of_two")


def _source(name: str) -> OperatorSpec:
    return OperatorSpec(name, "synthetic_source", (), {"rate": RATE, "payload": 400, "limit": COUNT})


def _step(name: str, *after: str, takes: UnitRule | None = None, **params: object) -> OperatorSpec:
    return OperatorSpec(name, "campaign_step", after, params, takes or Each())


def _sink(name: str, *after: str) -> OperatorSpec:
    return OperatorSpec(name, "campaign_sink", after)


def _join(rule: UnitRule) -> tuple[OperatorSpec, ...]:
    left, right = _step("a", "s"), _step("b", "t", leave_out=True)
    return (_source("s"), _source("t"), left, right, _step("j", "a", "b", takes=rule), _sink("z", "j"))


QUERIES: dict[str, tuple[OperatorSpec, ...]] = {
    "chain": (_source("s"), _step("a", "s"), _step("b", "a", leave_out=True), _sink("z", "b")),
    "chain with a window": (
        _source("s"),
        _step("a", "s", copies=2),
        _step("w", "a", takes=CountWindow(6, 3)),
        _sink("z", "w"),
    ),
    "join by position": _join(SameTau()),
    "join in windows": _join(TimeWindow(500 * MILLISECOND, 250 * MILLISECOND)),
    "fan-out": (
        _source("s"),
        _step("a", "s"),
        _step("b", "s", leave_out=True),
        _sink("y", "a"),
        _sink("z", "b"),
    ),
    "fan-out and join": (
        _source("s"),
        _step("a", "s"),
        _step("b", "s", leave_out=True),
        _step("j", "a", "b", takes=SameTau()),
        _sink("y", "a"),
        _sink("z", "j"),
    ),
}


class Fault(Struct, frozen=True):
    """``what`` happens to ``nodes`` at ``at``, for so many ``seconds``, both from when sources open."""

    what: str
    at: float
    seconds: float
    nodes: tuple[str, ...]
    value: float = 0.0


class Schedule(Struct, frozen=True):
    """``lag``: how late agents learn of changed links, which all have the same ``latency`` and ``bps``;
    ``mode``: how they learn the costs of whole ways.
    """

    seed: int
    query: str
    plan: DeploymentPlan
    policy: str
    period: float
    lag: float
    unacknowledged: float
    faults: tuple[Fault, ...]
    latency: float = 0.0005
    bps: int = 10_000_000
    tight: DeliveryLimits | None = None
    mode: Mode = Mode.LINK_STATE

    @property
    def limits(self) -> DeliveryLimits:
        return self.tight or DeliveryLimits(in_flight=64, unacknowledged=self.unacknowledged)

    @property
    def may_lose(self) -> bool:
        """Says whether tuples may be lost if the records say why."""
        drops = self.limits.overflow is Overflow.DROP_OLDEST or not self.limits.sources_wait
        return drops or self.plan.query.reliability == "best_effort"

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(replica.node for replica in self.plan.replicas))


def schedule(
    seed: int, reliability: Reliability = "exactly_once", queries: Sequence[str] = tuple(QUERIES)
) -> Schedule:
    draw = Random(f"campaign/{seed}")
    name = draw.choice(queries)
    query = Query(name, QUERIES[name], reliability)
    plan = _placed(query, draw.choice((1, 2, 2, 3)), draw.random() < 0.3, draw)
    drawn = Schedule(
        seed,
        name,
        plan,
        draw.choice(POLICIES),
        draw.choice((0.5, 1.0, 2.0)),
        draw.choice((0.1, 1.0, 3.0)),
        draw.choice((0.5, 2.0)),
        (),
        draw.choice((0.0005, 0.02, 0.2)),
        draw.choice((10_000_000, 200_000)),
    )
    return replace(drawn, faults=_faults(drawn, draw), mode=draw.choice(list(Mode)))


def tight_schedule(seed: int) -> Schedule:
    """Draws a schedule with tiny buffers, so that overflows happen: block, spill and drop_oldest in turn.

    It has no time windows: a blocked source captures at other times than in a run without faults.
    """
    timed = [name for name, ops in QUERIES.items() if any(isinstance(op.takes, TimeWindow) for op in ops)]
    drawn = schedule(seed, "exactly_once", [name for name in QUERIES if name not in timed])
    draw = Random(f"tight/{seed}")
    limits = DeliveryLimits(
        items=draw.choice((8, 12, 24)),
        bytes=draw.choice((4000, 1 << 20)),
        spill_bytes=draw.choice((3000, 1 << 20)),
        overflow=OVERFLOWS[seed % len(OVERFLOWS)],
        in_flight=draw.choice((2, 6, 64)),
        unacknowledged=drawn.unacknowledged,
        sources_wait=draw.random() < 0.7,
    )
    return replace(drawn, tight=limits)


def calm(drawn: Schedule) -> Schedule:
    """Returns the same query without faults; one replica of each operator is enough then.

    Without guarantees a tuple may be lost even so.
    """
    first = tuple(replica for replica in drawn.plan.replicas if replica.index == 0)
    plan = DeploymentPlan(replace(drawn.plan.query, reliability="exactly_once"), first)
    return replace(drawn, seed=0, plan=plan, policy="shortest_path", faults=(), tight=None)


def _placed(query: Query, replicas: int, together: bool, draw: Random) -> DeploymentPlan:
    """Returns a node for each replica or, ``together``, puts replicas of several operators on
    the same nodes.
    """
    placed = [Replica(name, 0, name) for name in (*query.sources(), *query.sinks())]
    for name in query.inner():
        for index in range(replicas):
            node = f"n{index}" if together and draw.random() < 0.7 else f"{name}{index}"
            placed.append(Replica(name, index, node))
    return DeploymentPlan(query, tuple(placed))


def _faults(drawn: Schedule, draw: Random) -> tuple[Fault, ...]:
    query, nodes = drawn.plan.query, drawn.nodes
    ends = {*query.sources(), *query.sinks()}
    inner = [node for node in nodes if node not in ends]

    def at() -> float:
        return draw.uniform(0.0, FAULTS_FOR)

    def pair() -> tuple[str, ...]:
        return tuple(draw.sample(nodes, 2))

    faults = []
    for _ in range(draw.choice((0, 1, 2, 4))):
        faults.append(Fault("crash", at(), draw.uniform(0.05, 6.0), (draw.choice(inner),)))
    for _ in range(draw.choice((0, 1, 2))):
        group = tuple(node for node in nodes if draw.random() < 0.4)
        faults.append(Fault("partition", at(), draw.uniform(0.2, 8.0), group))
    for _ in range(draw.choice((0, 2, 4))):
        faults.append(Fault("flap", at(), draw.uniform(0.5, 4.0), pair(), draw.uniform(0.05, 1.5)))
    for _ in range(draw.choice((0, 1, 3))):
        faults.append(Fault("slow", at(), draw.uniform(1.0, 6.0), pair(), draw.choice((10e3, 100e3))))
    for _ in range(draw.choice((0, 4, 10))):
        faults.append(Fault("price", at(), 0.0, pair(), draw.uniform(0.5, 4.0)))
    return tuple(sorted(faults, key=lambda fault: fault.at))
