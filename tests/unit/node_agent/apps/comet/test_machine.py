"""The state machine of a node, driven by hand: the farm of docs/comet.md, one contact at a time."""

from pathlib import Path

import pytest

from node_agent.apps.comet.claims import refusal
from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.journal import Unreadable, opened
from node_agent.apps.comet.machine import Machine
from node_agent.apps.comet.messages import (
    Acknowledged,
    Also,
    Ask,
    Carry,
    Entry,
    Heard,
    Mark,
    Marks,
    Occurred,
    Passed,
    Received,
    Told,
)
from node_agent.apps.comet.node_plan import JunctionPlan, NodePlan, StoreLimits, Stream, TaskPlan
from node_agent.apps.comet.outbox import Outbox

pytestmark = pytest.mark.unit

HEAT = Stream(0, 0, ("heat",), ("barn", "bus"))
SMOKE = Stream(1, 0, ("smoke",), ("field", "bus"), pulled=True)
FIRE = Stream(2, 0, ("heat", "smoke"), ("bus", "base"))
TASK = TaskPlan(0, "fire", "and(smoke, heat; 60s)", "base")


def node(name: str, limits: StoreLimits | None = None) -> NodePlan:
    junctions = {"bus": JunctionPlan(0, ((0,), (1,)), out=2), "base": JunctionPlan(0, ((2,),))}
    streams = tuple(each for each in (HEAT, SMOKE, FIRE) if name in each.path)
    own = (junctions[name],) if name in junctions else ()
    return NodePlan(name, (TASK,), streams, own, limits or StoreLimits())


def at(moment: float, event: str, number: int = 0) -> Instance:
    return Instance(moment, moment, event, number)


def test_a_junction_asks_for_what_could_complete_a_match_once() -> None:
    bus = Machine(node("bus"))
    bus.apply(Received(30.0, "barn", 1, Carry(at(10.0, "heat"), (0,))))
    ask = Ask(1, 0, {"smoke": (-50.0, 70.0)})
    assert bus.waiting("field") == [(1, ask)] and bus.waiting("base") == []
    bus.apply(Received(31.0, "barn", 1, Carry(at(10.0, "heat"), (0,))))
    assert len(bus.waiting("field")) == 1  # the same message came again
    bus.apply(Received(60.0, "field", 1, Carry(at(5.0, "smoke", 7), (1,))))
    assert [message for _, message in bus.waiting("base")] == [
        Carry(at(5.0, "smoke", 7), (2,)),
        Carry(at(10.0, "heat"), (2,)),
    ]


def test_a_pulled_source_answers_what_occurred_before_and_after_the_request_once() -> None:
    field = Machine(node("field"))
    for number, moment in enumerate((1.0, 100.0)):
        field.apply(Occurred(at(moment, "smoke", number)))
    assert field.waiting("bus") == []
    for number in (1, 2):
        field.apply(Received(110.0, "bus", number, Ask(1, 0, {"smoke": (50.0, 170.0)})))
    assert [m for _, m in field.waiting("bus")] == [Carry(at(100.0, "smoke", 1), (1,))]
    field.apply(Occurred(at(150.0, "smoke", 2)))
    field.apply(Occurred(at(171.0, "smoke", 3)))
    assert [m.instance.number for _, m in field.waiting("bus") if isinstance(m, Carry)] == [1, 2]


def test_what_waits_stays_until_it_is_acknowledged() -> None:
    barn = Machine(node("barn"))
    for number in range(3):
        barn.apply(Occurred(at(float(number), "heat", number)))
    barn.apply(Acknowledged(9.0, "bus", 2))
    assert [number for number, _ in barn.waiting("bus")] == [3]
    barn.apply(Acknowledged(9.0, "bus", 10**9))  # nobody can have what was never sent
    assert barn.waiting("bus") == []
    barn.apply(Occurred(at(9.0, "heat", 3)))
    assert [number for number, _ in barn.waiting("bus")] == [4]


def test_the_sink_detects_once_and_tells_once() -> None:
    base = Machine(node("base"))
    base.apply(Received(400.0, "bus", 1, Carry(at(10.0, "heat"), (2,))))
    base.apply(Received(400.0, "bus", 2, Carry(at(5.0, "smoke", 7), (2,))))
    (found,) = base.state.untold
    assert found.request == "fire" and found.detection.constituents == (at(5.0, "smoke", 7), at(10.0, "heat"))
    base.apply(Told(400.0, found.number))
    assert base.state.untold == []


def test_marks_tell_what_may_be_forgotten() -> None:
    field, bus = Machine(node("field")), Machine(node("bus"))
    field.apply(Occurred(at(5.0, "smoke", 0)))
    assert field.marks_for("bus", 20.0).up == {}  # it may be asked for anything
    bus.apply(Received(300.0, "barn", 1, Carry(at(10.0, "heat"), (0,))))
    bus.apply(Heard(300.0, "barn", Marks({0: Mark(290.0)}, {})))
    told = bus.marks_for("field", 300.0)
    assert told.down == {1: 230.0}  # heat until 290 s is known: nothing before 230 s will be asked for
    field.apply(Received(310.0, "bus", 1, Ask(1, 0, {"smoke": (-50.0, 70.0)})))
    field.apply(Heard(310.0, "bus", told))
    assert field.state.outlets[1].matches == []
    assert field.marks_for("bus", 310.0).up[1].time == 230.0
    bus.apply(Received(320.0, "field", 1, Carry(at(5.0, "smoke", 0), (1,))))
    bus.apply(Heard(320.0, "field", field.marks_for("bus", 310.0)))
    assert len(bus.state.junctions[0].known) == 0 and bus.marks_for("base", 320.0).up == {2: Mark(170.0)}
    assert len(bus.waiting("base")) == 2  # what was not acknowledged is kept


SMOKE_UP = Stream(0, 0, ("smoke",), ("field", "base"))


def watching(pulled: bool) -> Machine:
    drill = Stream(1, 0, ("drill",), ("barn", "base"), pulled=pulled, absent=True)
    task = TaskPlan(0, "fire", "and(smoke, !drill; 60s)", "base")
    plan = NodePlan("base", (task,), (SMOKE_UP, drill), (JunctionPlan(0, ((0,),), absent=(1,)),))
    return Machine(plan)


def test_absence_is_concluded_when_the_watched_event_is_known_long_enough() -> None:
    base = watching(pulled=False)
    base.apply(Received(100.0, "field", 1, Carry(at(50.0, "smoke"), (0,))))
    base.apply(Heard(109.0, "barn", Marks({1: Mark(110.0)}, {})))
    assert base.state.untold == []  # a drill at 110 s would still fit
    base.apply(Heard(111.0, "barn", Marks({1: Mark(110.5)}, {})))
    assert [each.detection.end for each in base.state.untold] == [50.0]


def test_absence_is_refuted_by_an_instance_and_even_by_a_hollow_one() -> None:
    for hollow in (False, True):
        base = watching(pulled=False)
        base.apply(Received(100.0, "field", 1, Carry(at(50.0, "smoke"), (0,))))
        base.apply(Received(109.0, "barn", 1, Carry(at(60.0, "drill"), (1,), hollow)))
        base.apply(Heard(200.0, "barn", Marks({1: Mark(190.0)}, {})))
        assert base.state.untold == [] and base.state.watches[0].candidates == []


@pytest.mark.parametrize(
    "entry", [Occurred(at(110.005, "drill")), Received(110.005, "field", 2, Carry(at(9.0, "smoke", 1), (0,)))]
)
def test_an_absence_here_is_concluded_also_if_something_happens_right_after_it(entry: Entry) -> None:
    drill = Stream(1, 0, ("drill",), ("base",), absent=True)
    task = TaskPlan(0, "fire", "and(smoke, !drill; 60s)", "base")
    base = Machine(NodePlan("base", (task,), (SMOKE_UP, drill), (JunctionPlan(0, ((0,),), absent=(1,)),)))
    base.apply(Received(100.0, "field", 1, Carry(at(50.0, "smoke"), (0,))))
    base.apply(entry)
    if base.state.untold == []:
        assert base.next_conclusion() == 110.0
        base.apply(Passed(110.02))
    assert at(50.0, "smoke") in [each.detection.constituents[0] for each in base.state.untold]
    assert base.next_conclusion() is None


def test_a_pulled_absence_waits_for_the_answer_to_its_own_request() -> None:
    base = watching(pulled=True)
    base.apply(Heard(90.0, "barn", Marks({1: Mark(float("-inf"), 0, 500.0)}, {})))
    base.apply(Received(100.0, "field", 1, Carry(at(50.0, "smoke"), (0,))))
    assert [message for _, message in base.waiting("barn")] == [Ask(1, 1, {"drill": (-10.0, 110.0)})]
    assert base.state.untold == []
    base.apply(Heard(600.0, "barn", Marks({1: Mark(float("-inf"), 1, 600.0)}, {})))
    assert len(base.state.untold) == 1


def test_an_instance_crosses_a_link_once_for_all_patterns() -> None:
    streams = (
        Stream(0, 0, ("smoke",), ("field", "base")),
        Stream(1, 1, ("smoke",), ("field", "base"), pulled=True),
    )
    tasks = (TaskPlan(0, "one", "smoke", "base"), TaskPlan(1, "two", "and(smoke, heat; 9s)", "base"))
    field = Machine(NodePlan("field", tasks, streams))
    field.apply(Occurred(at(1.0, "smoke")))
    field.apply(Received(2.0, "base", 1, Ask(1, 0, {"smoke": (0.0, 9.0)})))
    assert [m for _, m in field.waiting("base")] == [Carry(at(1.0, "smoke"), (0,)), Also("smoke", 0, (1,))]


def test_a_full_store_drops_what_matters_least_and_tells() -> None:
    streams = (
        Stream(0, 0, ("smoke",), ("field", "base"), priority=1),
        Stream(1, 1, ("heat",), ("field", "base")),
        Stream(2, 2, ("drill",), ("field", "base"), absent=True),
    )
    tasks = tuple(TaskPlan(n, f"r{n}", "smoke", "base") for n in range(3))
    field = Machine(NodePlan("field", tasks, streams, limits=StoreLimits(waiting=2150)))
    field.apply(Occurred(at(1.0, "drill")))
    field.apply(Occurred(at(2.0, "smoke")))
    field.apply(Occurred(at(3.0, "heat")))
    assert [(each.event, each.what) for each in field.dropped] == [("drill", "instance")]
    field.apply(Occurred(at(4.0, "smoke", 1)))
    assert [each.event for each in field.dropped] == ["drill", "heat"]
    kept = [message for _, message in field.waiting("base")]
    assert kept[0] == Carry(at(1.0, "drill"), (2,), hollow=True)  # that it occurred is still known
    assert [m.instance.event for m in kept if isinstance(m, Carry)] == ["drill", "smoke", "smoke"]


def test_a_node_goes_on_from_its_journal(tmp_path: Path) -> None:
    entries: list[Entry] = [
        Received(30.0, "barn", 1, Carry(at(10.0, "heat"), (0,))),
        Received(60.0, "field", 1, Carry(at(5.0, "smoke", 7), (1,))),
        Acknowledged(61.0, "field", 1),
        Heard(62.0, "barn", Marks({0: Mark(20.0)}, {})),
        Passed(63.0),
    ]
    path = tmp_path / "journal"
    machine, journal = opened(path, node("bus"))
    for entry in entries[:3]:
        journal.write(entry)
        machine.apply(entry)
    journal.close()
    path.write_bytes(path.read_bytes() + b"\0\0\0\x20half")  # killed while writing
    again, journal = opened(path, node("bus"))
    assert again.state == machine.state
    for entry in entries[3:]:
        journal.write(entry)
        machine.apply(entry)
    journal.close()
    assert opened(path, node("bus"))[0].state == machine.state
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(Unreadable, match="does not begin with a whole state"):
        opened(path, node("bus"))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Received(1.0, "barn", 1, Carry(at(1.0, "heat"), (0,))), None),
        (Received(1.0, "barn", 1, Carry(at(1.0, "heat"), (1,))), "stream"),
        (Received(1.0, "field", 1, Carry(at(1.0, "heat"), (1,))), "event"),
        (Received(1.0, "barn", 1, Carry(Instance(2.0, 1.0, "heat", 0), (0,))), "time"),
        (Received(1.0, "barn", 1, Carry(Instance(float("nan"), 1.0, "heat", 0), (0,))), "time"),
        (Received(1.0, "barn", 0, Carry(at(1.0, "heat"), (0,))), "number"),
        (Received(1.0, "barn", 1, Ask(0, 0, {"heat": (0.0, 1.0)})), "stream"),
        (Received(1.0, "base", 1, Ask(2, 0, {"heat": (0.0, 1.0)})), "stream"),
        (Heard(1.0, "field", Marks({0: Mark(1.0)}, {})), "stream"),
        (Heard(1.0, "barn", Marks({0: Mark(float("inf"))}, {})), "time"),
    ],
)
def test_neighbours_speak_of_their_own_streams_only(said: Received | Heard, reason: str | None) -> None:
    assert refusal(node("bus"), said) == reason


def test_a_junction_may_send_an_instance_long_after_it_came() -> None:
    """Its mark must not say that all earlier instances were sent: a reference to one would be lost."""
    own = (Stream(0, 0, ("smoke",), ("hut",)), Stream(1, 0, ("heat",), ("hut",)))
    streams = (
        *own,
        Stream(2, 0, ("heat", "smoke"), ("hut", "base")),
        Stream(3, 1, ("smoke",), ("hut", "base")),
    )
    tasks = (TASK, TaskPlan(1, "any", "smoke", "base"))
    hut = Machine(NodePlan("hut", tasks, streams, (JunctionPlan(0, ((0, 1),), out=2),)))
    junctions = (JunctionPlan(0, ((2,),)), JunctionPlan(1, ((3,),)))
    base = Machine(NodePlan("base", tasks, streams[2:], junctions))

    def meet(now: float) -> None:
        for number, message in list(hut.waiting("base")):
            base.apply(Received(now, "hut", number, message))
        base.apply(Heard(now, "hut", hut.marks_for("base", now)))
        hut.apply(Acknowledged(now, "base", base.state.taken["hut"]))

    hut.apply(Occurred(at(10.0, "smoke")))
    hut.apply(Passed(39.0))
    meet(40.0)
    hut.apply(Occurred(at(60.0, "heat")))
    assert {type(message) for _, message in hut.waiting("base")} == {Also, Carry}
    meet(80.0)
    assert [found.request for found in base.state.untold] == ["any", "fire"]


def test_more_requests_than_a_store_may_keep_are_told_and_not_counted_as_answered() -> None:
    few = StoreLimits(kept=10)
    watched = Stream(1, 0, ("smoke",), ("field", "bus"), pulled=True, absent=True)
    field = Machine(NodePlan("field", (TASK,), (watched,), limits=few))
    for number in range(1, 31):
        asked = Ask(1, number, {"smoke": (float(number), 4e9)})
        field.apply(Received(5.0, "bus", number, asked))
    assert len(field.state.outlets[1].asked.asked) == 10 and field.state.outlets[1].asks == 10
    assert [each.what for each in field.dropped] == ["request"] * 20
    assert field.marks_for("bus", 9.0).up[1].asks == 10


def test_a_flood_of_instances_without_marks_is_bounded() -> None:
    few = StoreLimits(waiting=50_000, kept=20)
    junction = JunctionPlan(0, ((0,), (1,)), 2)
    bus = Machine(NodePlan("bus", (TASK,), (HEAT, SMOKE, FIRE), (junction,), few))
    for number in range(1, 401):
        at = float(number)
        bus.apply(Received(at, "barn", number, Carry(Instance(at, at, "heat", number), (0,))))
        bus.apply(Received(at, "field", number, Carry(Instance(at, at, "smoke", number), (1,))))
    state = bus.state
    assert len(state.cached["barn"]) <= 40 and len(state.outboxes["base"].crossed) <= 20
    assert len(state.junctions[0].known) <= 20
    assert state.outboxes["base"].size <= 50_000 and bus.dropped


def test_an_instance_that_was_forgotten_crosses_in_full_again() -> None:
    few = StoreLimits(kept=2)
    outbox = Outbox()
    for number in (1, 2, 3, 1):
        outbox.carry(Instance(1.0, 1.0, "smoke", number), (0,), False, few)
    outbox.carry(Instance(1.0, 1.0, "smoke", 1), (1,), False, few)
    assert [type(message).__name__ for _, message in outbox.waiting] == ["Carry"] * 4 + ["Also"]


def test_a_reference_to_an_unknown_instance_leaves_an_absence_uncertain() -> None:
    drill = Stream(1, 0, ("drill",), ("field", "base"), absent=True)
    task = TaskPlan(0, "fire", "and(smoke, !drill; 10s)", "base")
    plan = NodePlan("base", (task,), (SMOKE_UP, drill), (JunctionPlan(0, ((0,),), None, (1,)),))
    for referred in (False, True):
        base = Machine(plan)
        base.apply(Received(100.0, "field", 1, Carry(Instance(90.0, 90.0, "smoke", 0), (0,))))
        if referred:
            base.apply(Received(100.0, "field", 2, Also("drill", 7, (1,))))
        base.apply(Heard(120.0, "field", Marks({0: Mark(119.0), 1: Mark(119.0)}, {})))
        assert len(base.state.untold) == (0 if referred else 1)
        assert bool(base.dropped) is referred
    relayed = Stream(1, 0, ("drill",), ("field", "bus", "base"), absent=True)
    bus = Machine(NodePlan("bus", (task,), (relayed,)))
    bus.apply(Received(100.0, "field", 1, Also("drill", 7, (1,))))
    bus.apply(Heard(120.0, "field", Marks({1: Mark(119.0)}, {})))
    assert 1 not in bus.marks_for("base", 120.0).up
