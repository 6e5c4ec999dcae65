"""The meaning of patterns, by small examples; and the form for planning means the same."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.comet.conjuncts import ConjunctError, conjuncts, fit, matches_with
from node_agent.apps.comet.events import Instance, detection_of
from node_agent.apps.comet.grammar import parse
from node_agent.apps.comet.reference import detections

pytestmark = pytest.mark.unit


def occurred(**times: list[float | tuple[float, float]]) -> list[Instance]:
    """Instances by event: moments, or pairs of start and end."""
    return [
        Instance(*(when if isinstance(when, tuple) else (when, when)), event, number)
        for event, listed in times.items()
        for number, when in enumerate(listed)
    ]


def found(text: str, **times: list[float | tuple[float, float]]) -> list[str]:
    """Each detection as the names and numbers of its constituents."""
    return [
        " ".join(f"{each.event}{each.number}" for each in detection.constituents)
        for detection in detections(parse(text), occurred(**times))
    ]


def test_and_takes_each_combination_within_the_window() -> None:
    assert found("and(a, b; 10s)", a=[0.0, 20.0], b=[10.0, 31.0]) == ["a0 b0", "b0 a1"]
    assert found("and(a, b, c; 2s)", a=[0.0], b=[1.0, 2.0], c=[2.0, 3.0]) == ["a0 b0 c0", "a0 b1 c0"]


def test_seq_needs_the_order_and_moments_may_touch() -> None:
    assert found("seq(a, b; 10s)", a=[5.0], b=[4.0, 5.0, 6.0]) == ["a0 b1", "a0 b2"]
    assert found("seq(a, b; 10s)", a=[(0.0, 3.0)], b=[2.0, (3.0, 4.0)]) == ["a0 b1"]


def test_start_and_end_are_those_of_the_outermost_constituents() -> None:
    only = detections(parse("and(a, b; 10s)"), occurred(a=[(1.0, 6.0)], b=[(2.0, 4.0)]))
    assert [(each.start, each.end) for each in only] == [(1.0, 6.0)]
    assert found("and(a, b; 4s)", a=[(1.0, 6.0)], b=[(2.0, 4.0)]) == []


def test_or_has_each_instance_once() -> None:
    assert found("or(a, b, a)", a=[1.0], b=[0.0]) == ["b0", "a0"]


def test_negation_refuses_what_would_fit_in_its_place() -> None:
    assert found("seq(a, !b, c; 10s)", a=[0.0, 5.0], b=[2.0], c=[6.0]) == ["a1 c0"]
    assert found("and(a, !b; 10s)", a=[0.0, 30.0], b=[41.0, 9.0]) == ["a1"]
    assert found("seq(a, !b; 10s)", a=[0.0, 30.0], b=[29.0]) == ["a0", "a1"]
    assert found("seq(!b, a; 10s)", a=[0.0, 30.0], b=[29.0]) == ["a0"]
    assert found("and(a, !and(b, c; 1s); 10s)", a=[0.0], b=[1.0], c=[3.0]) == ["a0"]
    assert found("and(a, !and(b, c; 2s); 10s)", a=[0.0], b=[1.0], c=[3.0]) == []


def test_an_instance_is_used_once_in_a_match() -> None:
    assert found("and(a, a; 10s)", a=[0.0, 1.0]) == ["a0 a1"]
    assert found("and(a, !a; 10s)", a=[0.0, 1.0, 50.0]) == ["a2"]


def test_operators_nest() -> None:
    text = "and(seq(a, b; 5s), or(c, d); 20s)"
    assert found(text, a=[0.0], b=[4.0, 6.0], c=[20.0], d=[21.0]) == ["a0 b0 c0"]


PATTERNS = (
    "and(a, b, c; 4s)",
    "seq(a, b, c; 6s)",
    "and(seq(a, b; 2s), c; 5s)",
    "seq(and(a, b; 3s), or(c, d); 6s)",
    "and(or(a, seq(b, c; 2s)), d; 4s)",
)
moments = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), max_size=4)


@given(st.sampled_from(PATTERNS), moments, moments, moments, moments)
@settings(max_examples=80, deadline=None)
def test_conjuncts_mean_the_same(
    text: str,
    a: list[tuple[int, int]],
    b: list[tuple[int, int]],
    c: list[tuple[int, int]],
    d: list[tuple[int, int]],
) -> None:
    instances = [
        Instance(float(start), float(start + length), event, number)
        for event, listed in zip("abcd", (a, b, c, d), strict=True)
        for number, (start, length) in enumerate(listed)
    ]
    expected = set(detections(parse(text), instances))
    by_pairs, by_anchor = set(), set()
    for conjunct in conjuncts(parse(text)):
        stored = {name: [i for i in instances if i.event == name] for name in conjunct.events}
        for chosen in product(*stored.values()):
            if all(fit(conjunct, x, y) for x in chosen for y in chosen if x.event < y.event):
                by_pairs.add(detection_of(frozenset(chosen)))
        for anchor in stored[conjunct.events[0]]:
            for match in matches_with(conjunct, anchor, conjunct.events, stored):
                by_anchor.add(detection_of(frozenset(match)))
    assert by_pairs == by_anchor == expected


def test_conjuncts_of_a_pattern() -> None:
    first, second = conjuncts(parse("seq(a, !x, or(b, and(c, d; 5s)), !y; 9s)"))
    assert first.events == ("a", "b") and second.events == ("a", "c", "d")
    assert [(a.events, a.wait) for a in first.absences] == [(("x",), 0.0), (("y",), 9.0)]
    assert second.windows["c", "d"] == 5.0 and second.windows["d", "a"] == 9.0
    assert second.before == {("a", "c"), ("a", "d")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("and(a, seq(b, a; 2s); 9s)", 'needs the event "a" twice'),
        ("and(a, !a; 9s)", 'needs the event "a" twice'),
        ("and(" + ", ".join(f"or(a{n}, b{n})" for n in range(7)) + "; 9s)", "more than 64 alternatives"),
    ],
)
def test_what_cannot_be_planned_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConjunctError, match=problem):
        conjuncts(parse(text))
