"""Positions that contradict each other, as a liar may tell them: no state machine may fail on them."""

from collections.abc import Iterable, Sequence

import pytest

from node_agent.apps.dataflow.delivery.core import DeliveryCore
from node_agent.apps.dataflow.delivery.effects import Effect, Process, ProcessUnit, Send
from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Overflow, Reliability
from node_agent.apps.dataflow.delivery.plan_neighbours import plan_neighbours_of
from node_agent.apps.dataflow.delivery.retention import Retention
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import Each
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.windows.assembly import assembler_for
from node_agent.apps.dataflow.windows.units import Gaps
from node_agent.apps.dataflow.wire.admission import refusal
from node_agent.apps.dataflow.wire.claims import Claims
from node_agent.apps.dataflow.wire.messages import Data, PassedOn
from node_agent.transport.errors import Impossible
from node_agent.transport.messages import Pair
from tests.unit.node_agent.apps.dataflow.test_malicious_member import EVIL, RULES, Liar, deployment

SEEDS = range(10)
STEPS = 400
WINDOWS = [rule for rule in RULES if rule != "each"]


class Hostile(Liar):
    """What the claims of a connection to ``op/0`` let through."""

    def __init__(self, rule: str, level: str, seed: int) -> None:
        super().__init__(seed)
        self.plan = deployment(rule, level)  # type: ignore[arg-type]
        self.spec = self.plan.query.operator("op")
        self.origins = self.plan.query.origins()
        self._claims = Claims(self.plan, Pair("op/1", "op/0"))

    def input(self) -> str:
        return self.random.choice(self.spec.after)

    def items(self, upstream: str) -> Sequence[StreamTuple]:
        items = [self.item(self.origins[upstream][0]) for _ in range(self.random.randrange(1, 4))]
        try:
            self._claims.check_batch(Data(items, passed_on=PassedOn(f"{upstream}/0")))
        except Impossible:
            return ()
        return items

    def floors_of(self, upstream: str) -> dict[str, int]:
        return {origin: floor for origin, floor in self.floors().items() if origin in self.origins[upstream]}

    def ranges_of_output(self) -> dict[str, list[tuple[int, int]]]:
        return {origin: ranges for origin, ranges in self.streams().items() if origin in self.origins["op"]}


@pytest.mark.parametrize("rule", WINDOWS)
def test_windows_of_best_effort(rule: str) -> None:
    for seed in SEEDS:
        liar = Hostile(rule, "best_effort", seed)
        gaps = Gaps()
        assembler = assembler_for(liar.spec, liar.origins, gaps)
        for _ in range(STEPS):
            upstream, chance = liar.input(), liar.random.random()
            for item in liar.items(upstream):
                if chance < 0.05:
                    assembler.made_elsewhere(upstream, [item], liar.ranges())
                elif chance > 0.98:
                    assembler.hand_over()
                for unit in assembler.add(upstream, item):
                    unit.result()
                    assembler.done(unit.origin, unit.tau)
                assembler.released()
                assembler.unused()
        assert all(assembler.held(u, o) <= gaps.held for u in liar.spec.after for o in liar.origins[u])


@pytest.mark.parametrize("level", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize("rule", RULES)
def test_delivery(rule: str, level: str) -> None:
    for seed in SEEDS:
        _deliver(Hostile(rule, level, seed), Reliability(level))


def _deliver(liar: Hostile, level: Reliability) -> None:
    spec, some = liar.spec, liar.random
    assembler = None if isinstance(spec.takes, Each) else assembler_for(spec, liar.origins)
    overflow = some.choice((Overflow.BLOCK, Overflow.DROP_OLDEST))
    limits = DeliveryLimits(items=some.choice((4, 64)), in_flight=8, overflow=overflow)
    core = DeliveryCore(plan_neighbours_of(liar.plan.replica("op/0"), liar.plan), level, limits, assembler)
    work: list[Process | ProcessUnit] = []

    def do(effects: Iterable[Effect]) -> None:
        work.extend(effect for effect in effects if isinstance(effect, Process | ProcessUnit))

    for sink in ("screen", "log"):
        do(core.steer(sink, Hop(f"{sink}/0", 1.0), 0.0))
    now = 0.0
    for _ in range(STEPS):
        now += 0.01
        upstream, sink = liar.input(), some.choice(("screen", "log"))
        match some.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                if items := liar.items(upstream):
                    do(core.receive(f"{upstream}/0", upstream, items, liar.floors_of(upstream), now))
            case 5 | 6 | 7 if work:
                done = work.pop(0)
                if isinstance(done, Process):
                    made = [item.payloads for item in done.items]
                    do(core.processed_each(done.upstream, done.items, made, now))
                else:
                    do(core.processed(done.unit, (b"x",), now))
            case 8:
                told = liar.ranges_of_output(), liar.ranges_of_output()
                do(core.acknowledged(f"{sink}/0", sink, *told, now))
            case 9:
                do(core.asked(f"{sink}/0", sink, now))
                do(core.connection_failed(sink, f"{sink}/0", now))
                do(core.hand_over("op/1"))
            case 10:
                ends = [item for item in liar.items(upstream) if item.last]
                do(core.settled(upstream, liar.floors_of(upstream), ends, now))
            case _:
                now += 5 * some.random()
                do(core.tick(now))
                core.next_tick(now)


@pytest.mark.parametrize("rule", ["each", "count"])
def test_who_sends_without_end_is_told_from_who_keeps_to_its_limits(rule: str) -> None:
    """The operator has no way to send, so that what comes is held."""
    liar = Hostile(rule, "exactly_once", 1)
    assembler = None if rule == "each" else assembler_for(liar.spec, liar.origins)
    neighbours = plan_neighbours_of(liar.plan.replica("op/0"), liar.plan)
    core = DeliveryCore(neighbours, Reliability.EXACTLY_ONCE, DeliveryLimits(items=16), assembler)
    overrun_at = None
    for tau in range(2, 10_000, 2):
        item = StreamTuple("left/0", tau, tau - 1, tau, tau, (b"x",))
        if core.overrun("left/0", "left"):
            overrun_at = tau // 2
            break
        for effect in core.receive("left/0", "left", [item], {}, 0.0):
            if isinstance(effect, Process):
                core.processed_each("left", effect.items, [(b"x",)] * len(effect.items), 0.0)
    assert overrun_at is not None and 2 * 16 * 16 <= overrun_at <= 3 * 16 * 16


FAR = 2**61


def core_of(replica: str, plan: DeploymentPlan, limits: DeliveryLimits | None = None) -> DeliveryCore:
    spec, origins = plan.query.operator(plan.replica(replica).operator), plan.query.origins()
    assembler = None if isinstance(spec.takes, Each) else assembler_for(spec, origins)
    return DeliveryCore(
        plan_neighbours_of(plan.replica(replica), plan),
        Reliability.EXACTLY_ONCE,
        limits or DeliveryLimits(),
        assembler,
    )


def items_of(origin: str, first: int, last: int) -> list[StreamTuple]:
    return [StreamTuple(origin, tau, tau - 1, tau, tau - 1, (b"x",)) for tau in range(first, last + 1)]


def test_a_sink_goes_on_after_an_idle_replica_said_that_what_is_to_come_is_done() -> None:
    core = core_of("screen/0", deployment("each", "exactly_once"))
    core.receive("op/0", "op", items_of("right/0", 1, 5), {}, 0.0)
    end = StreamTuple("right/0", FAR, FAR - 1, FAR, FAR, (), True)
    for ends in ([], [end]):
        core.settled("op", {"right/0": FAR}, ends, 0.5)
    effects = core.receive("op/0", "op", items_of("right/0", 6, 9), {"left/0": FAR}, 1.0)
    assert [item.tau for e in effects if isinstance(e, Process) for item in e.items] == [6, 7, 8, 9]


def test_a_source_goes_on_after_an_idle_replica_has_acknowledged_what_is_to_come() -> None:
    core = core_of("right/0", deployment("each", "exactly_once"))
    core.steer("op", Hop("op/0", 1.0), 0.0)
    core.emit([((b"x",), 1)], 0.0)
    core.acknowledged("op/1", "op", {"right/0": [(1, FAR)]}, {}, 0.0)
    effects = core.emit([((b"x",), tau) for tau in range(2, 12)], 1.0)
    assert [item.tau for e in effects if isinstance(e, Send) for item in e.items] == list(range(2, 12))


def test_the_end_of_a_stream_that_is_over_is_still_believed() -> None:
    """A replica that takes over has to hear of it: nobody sends it what is done."""
    core = core_of("op/0", deployment("join", "exactly_once"))
    core.receive("right/0", "right", items_of("right/0", 1, 5), {"right/0": 0}, 0.0)
    assert core.holding
    core.settled("left", {"left/0": 3}, [StreamTuple("left/0", 3, 2, 2, 2, (), True)], 3.0)
    assert core.floor("left", "left/0") == 3 and core.floor("right", "right/0") == 5


def test_a_sibling_does_not_say_what_is_done() -> None:
    claims = Claims(deployment("join", "exactly_once"), Pair("op/1", "op/0"))
    items = items_of("right/0", 1, 1)
    claims.check_batch(Data(items, passed_on=PassedOn("right/0")))
    with pytest.raises(Impossible):
        claims.check_batch(Data(items, (), {"right/0": FAR}, PassedOn("right/0")))


def test_one_hole_does_not_stand_for_a_whole_stream_of_a_source() -> None:
    claims = Claims(deployment("each", "exactly_once"), Pair("op/1", "screen/0"))
    with pytest.raises(Impossible):
        claims.check_batch(Data([StreamTuple("right/0", FAR, 0, 1, 0)]))


@pytest.mark.parametrize(("rule", "reason"), [("each", "sender"), ("join", None), ("count", None)])
def test_a_sibling_is_welcome_only_where_parts_are_handed_over(rule: str, reason: str | None) -> None:
    pair = Pair("op/1", "op/0")
    assert refusal(pair, EVIL, "n2", deployment(rule, "exactly_once")) == reason


def test_many_acknowledged_ranges_sort_what_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    core = core_of("right/0", deployment("each", "exactly_once"))
    core.steer("op", Hop("op/0", 1.0), 0.0)
    core.emit([((b"x",), tau) for tau in range(1, 4001)], 0.0)
    sorts, sort = list[int](), Retention._sort_waiting

    def counted(retention: Retention) -> None:
        sorts.append(1)
        sort(retention)

    monkeypatch.setattr(Retention, "_sort_waiting", counted)
    core.acknowledged("op/1", "op", {}, {"right/0": [(tau, tau) for tau in range(300, 4000, 2)]}, 0.0)
    assert len(sorts) <= 10
