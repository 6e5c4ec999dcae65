"""What neighbours may send, and how events occur again after a restart."""

import pytest

from node_agent.apps.comet.claims import FAR
from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.machine import Machine
from node_agent.apps.comet.messages import Also, Ask, Carry, Mark, Marks, Message, Occurred
from node_agent.apps.comet.model import DetectConfig, OwnEvent, problems
from node_agent.apps.comet.neighbour import Neighbour
from node_agent.apps.comet.node_plan import JunctionPlan, NodePlan, StoreLimits, Stream, TaskPlan
from node_agent.apps.comet.sources import Sources, opening
from node_agent.apps.comet.wire import CODEC, Have, Item, Items, NeighbourAdmission, item_of
from node_agent.telemetry.kinds import TIME_NS
from node_agent.transport.errors import FrameError, Impossible
from node_agent.transport.framing import encode
from node_agent.transport.messages import Pair

pytestmark = pytest.mark.unit

SMOKE = Stream(0, 0, ("smoke",), ("field", "base"))
PLAN = NodePlan("base", (TaskPlan(0, "fire", "smoke", "base"),), (SMOKE,), (JunctionPlan(0, ((0,),)),))
OF_SMOKE = Carry(Instance(1.0, 1.0, "smoke", 0), (0,))


def test_neighbours_connect_under_their_own_name_only() -> None:
    admission = NeighbourAdmission(PLAN)
    assert admission.refusal(Pair("field", "base"), "field") is None and admission.expected("field") == 1
    assert admission.refusal(Pair("field", "base"), "barn") == "sender"
    assert admission.refusal(Pair("barn", "base"), "barn") == "sender" and admission.expected("barn") == 0
    assert admission.refusal(Pair("field", "bus"), "field") == "receiver"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (1, Carry(Instance(1.0, 1.0, "heat", 0), (0,))),
        (1, Carry(Instance(1.0, 1.0, "smoke", 0), (0, 0))),
        (1, Carry(Instance(-1.0, 1.0, "smoke", 0), (0,))),
        (1, Carry(Instance(1e12, 1e12, "smoke", 0), (0,))),
        (1, Carry(Instance(1.0, float("nan"), "smoke", 0), (0,))),
        (1, Carry(Instance(1.0, 1.0, "smoke", 2**60), (0,))),
        (1, Also("smoke", 0, (0, 0))),
        (0, Marks({0: Mark(float("nan"))}, {})),
        (0, Marks({0: Mark(float("inf"))}, {})),
        (0, Marks({0: Mark(1.0, -1)}, {})),
        (0, OF_SMOKE),
        (1, Ask(0, 0, {"smoke": (0.0, 1.0)})),
        (1, Marks({0: Mark(1.0)}, {})),
        (0, Marks({7: Mark(1.0)}, {})),
    ],
)
def test_what_a_neighbour_cannot_say_closes_the_connection(number: int, message: Message | Marks) -> None:
    checks = NeighbourAdmission(PLAN).checks(Pair("field", "base"))
    checks.check_batch(Items((Item(1, 0, OF_SMOKE), Item(0, 1, Marks({0: Mark(1.0)}, {})))))
    with pytest.raises(Impossible):
        checks.check_batch(Items((Item(number, 0, message),)))
    with pytest.raises(Impossible):
        checks.check_message(Have(3))


def test_items_survive_the_wire_and_rubbish_does_not() -> None:
    sent = Items((item_of(1, 0, OF_SMOKE, StoreLimits(event=10)), Item(0, 1, Marks({0: Mark(1.0)}, {}))))
    _, header = encode(sent)
    assert CODEC.decode(header) == sent and sent.items[0].content == bytes(10)
    for end in range(0, len(header), 7):
        with pytest.raises(FrameError):
            CODEC.decode(header[:end])


def test_after_a_broken_connection_everything_unacknowledged_is_sent_again() -> None:
    field = Machine(NodePlan("field", PLAN.tasks, (SMOKE,)))
    for number in range(3):
        field.apply(Occurred(Instance(float(number), float(number), "smoke", number)))
    heard: list[int] = []
    neighbour = Neighbour(
        field, "base", lambda: 9.0, lambda name, number: heard.append(number), lambda name, up: None
    )
    first = neighbour._next_items()
    assert [(item.number, item.previous) for item in first] == [(1, 0), (2, 1), (3, 2)]
    neighbour._cursor = 3
    assert neighbour._next_items() == []
    neighbour.said(Pair("field", "base"), Have(1))
    assert heard == [1] and neighbour._next_items() == []
    neighbour.said(Pair("field", "base"), Have(0, again=True))
    assert [item.number for item in neighbour._next_items()] == [1, 2, 3]
    neighbour._cursor = 3
    neighbour.lost(Pair("field", "base"), (), "broken")
    assert [item.number for item in neighbour._next_items()] == [1, 2, 3]


def test_events_occur_as_without_a_restart() -> None:
    events = (OwnEvent("smoke", 0.5, seed="1"), OwnEvent("heat", 1.0, times=((1.0, 9.0), (20.0, 20.0))))
    whole = list(Sources(events, 100.0, {}).due(130.0))
    assert [each.end for each in whole] == sorted(each.end for each in whole)
    assert [each for each in whole if each.event == "heat"] == [
        Instance(101.0, 109.0, "heat", 0),
        Instance(120.0, 120.0, "heat", 1),
    ]
    before = list(Sources(events, 100.0, {}).due(110.0))
    told = {"smoke": sum(each.event == "smoke" for each in before), "heat": 1}
    assert before + list(Sources(events, 100.0, told).due(130.0)) == whole


@pytest.mark.parametrize("now", [3.2, 1_763_445_321.123456])
def test_instances_as_far_apart_as_a_window_is_long_are_inside_it(now: float) -> None:
    events = (OwnEvent("smoke", 1.0, times=((10.0, 10.0),)), OwnEvent("heat", 1.0, times=((30.5, 30.5),)))
    smoke, heat = Sources(events, opening(now), {}).due(now + 60)
    assert heat.end - smoke.start == 20.5 and smoke.start >= now + 10
    assert [round(each.end * 1e9) / 1e9 for each in (smoke, heat)] == [smoke.end, heat.end]


def test_a_plan_that_cannot_run_is_refused() -> None:
    assert problems(DetectConfig(PLAN), "base") == []
    assert problems(DetectConfig(PLAN), "bus") == ["the plan is for base"]
    broken = NodePlan("base", (TaskPlan(0, "fire", "and(", "base"),), (), (JunctionPlan(0, ((5,),)),))
    assert len(problems(DetectConfig(broken), "base")) == 2


def test_a_plan_whose_streams_do_not_come_here_is_refused() -> None:
    stray = Stream(0, 0, ("smoke",), ("field", "bus"))
    looping = Stream(0, 0, ("smoke",), ("base", "field", "base"))
    for stream in (stray, looping):
        plan = NodePlan("base", PLAN.tasks, (stream,))
        assert problems(DetectConfig(plan), "base") == ["stream 0 cannot go over this node"]


def test_the_latest_moment_a_neighbour_may_say_can_be_recorded() -> None:
    longest_window_s = 30 * 86400
    assert (FAR + longest_window_s) * 1e9 < TIME_NS[1]
