"""What cannot be planned is refused with one sentence."""

import pytest

from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.grammar import parse
from orchestrator.apps.comet.planning.links import Link
from orchestrator.apps.comet.planning.problem import Request, Unplannable, World, tasks, world
from orchestrator.apps.comet.planning.together import plan_requests
from orchestrator.errors import EXIT_BAD_INPUT
from tests.unit.orchestrator.apps.comet.example import LINKS, PATTERN, SIZES, SOURCES, example

pytestmark = pytest.mark.unit


def refusal(text: str, given: World, sink: str = "V1", tolerance: float = 1000.0) -> str:
    with pytest.raises(Unplannable) as raised:
        plan_requests([Request("ce", parse(text), sink, tolerance)], given)
    assert raised.value.exit_code == EXIT_BAD_INPUT
    return str(raised.value)


def test_an_event_without_a_source() -> None:
    assert refusal("and(pe1, pe9; 2)", example()) == (
        'the pattern "ce" names the event "pe9", which has no source: declare it'
    )


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_of_zero(rate: float) -> None:
    with pytest.raises(Unplannable, match="give a rate above 0, or leave the event out"):
        world(LINKS, [EventSource("pe1", "V4", rate)], SIZES)


def test_a_sink_that_no_link_reaches() -> None:
    assert refusal(PATTERN, example(), sink="V8") == (
        'no link leads from V4, the source of the event "pe1", to the sink V8 of "ce": '
        "add links, or choose another sink"
    )
    one_way = world([*LINKS[:5], Link("V3", "V7", 4.0, 5.0, 1.0, one_way=True)], SOURCES, SIZES)
    assert "no link leads from V7" in refusal(PATTERN, one_way)


def test_a_tolerance_below_the_fastest_delay() -> None:
    assert refusal(PATTERN, example(), tolerance=13.0) == (
        'the pattern "ce" may be 13 s late, but the fastest plan can take 14.0 s: allow at least 15 s'
    )


def test_a_tolerance_that_only_the_fastest_tree_keeps() -> None:
    cheap = Link("b", "a", 100.0, 5.0, 1e9, cost=1.0)
    fast = [Link("b", "c", 1.0, 5.0, 1e9, cost=80.0), Link("c", "a", 1.0, 5.0, 1e9, cost=80.0)]
    given = world([cheap, *fast], [EventSource("x", "b", 1.0), EventSource("y", "b", 1.0)], SIZES)
    (patient,) = plan_requests([Request("ce", parse("and(x, y; 2)"), "a", 200.0)], given).plans
    (hasty,) = plan_requests([Request("ce", parse("and(x, y; 2)"), "a", 5.0)], given).plans
    assert patient.delay > 100 and hasty.delay < 5 and hasty.cost > patient.cost


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("and(a, b; 5s)", [EventSource("a", "V4", 1.0, length=6.0), EventSource("b", "V5", 1.0)]),
        (
            "seq(a, b; 5s)",
            [EventSource("a", "V4", 1.0, length=3.0), EventSource("b", "V5", 1.0, length=3.0)],
        ),
        ("seq(a, b; 5s)", [EventSource("a", "V4", 1.0, begin=50.0), EventSource("b", "V5", 1.0, end=40.0)]),
        ("and(a, b; 5s)", [EventSource("a", "V4", 1.0, begin=50.0), EventSource("b", "V5", 1.0, end=40.0)]),
    ],
)
def test_a_pattern_that_can_never_be_met(text: str, sources: list[EventSource]) -> None:
    assert refusal(text, world(LINKS, sources, SIZES)).startswith('the pattern "ce" can never be met: ')


def test_alternatives_that_can_never_be_met_are_left_out() -> None:
    late = EventSource("pe5", "V4", 1.0, begin=1e6)
    early = EventSource("pe6", "V5", 1.0, end=10.0)
    given = world(LINKS, [*SOURCES, late, early], SIZES)
    found = tasks(Request("ce", parse("and(pe5, or(pe2, pe6); 5s)"), "V1", 100.0), given)
    assert [task.conjunct.events for task in found] == [("pe5", "pe2")]


def test_an_event_twice() -> None:
    assert 'needs the event "pe1" twice' in refusal("seq(pe1, pe2, pe1; 5s)", example())


def test_links_and_sources_that_cannot_be() -> None:
    with pytest.raises(Unplannable, match="the link a - b cannot be"):
        world([Link("a", "b", -1.0, 1.0, 1.0)], [])
    with pytest.raises(Unplannable, match="has two sources"):
        world([], [SOURCES[0], SOURCES[0]])
    with pytest.raises(Unplannable, match="ends before it begins"):
        world([], [EventSource("a", "n", 1.0, begin=5.0, end=5.0)])
