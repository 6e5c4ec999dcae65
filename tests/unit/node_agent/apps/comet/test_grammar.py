"""Patterns are read, printed back, and refused at the character that is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.comet.grammar import LONGEST, PatternError, parse
from node_agent.apps.comet.patterns import And, Event, Not, Or, Pattern, Seq, event_names, printed

pytestmark = pytest.mark.unit

A, B, C = Event("a"), Event("b"), Event("c")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a", A),
        ("and(a, b; 60s)", And((A, B), 60.0)),
        (" seq ( a ,b;2 min ) ", Seq((A, B), 120.0)),
        ("or(a, b, c)", Or((A, B, C))),
        ("and(a, !b; 500ms)", And((A, Not(B)), 0.5)),
        ("seq(a, !or(b, c), and(b, c; 1.5); 1h)", Seq((A, Not(Or((B, C))), And((B, C), 1.5)), 3600.0)),
        ("and(door.open-2, _x; 1e1)", And((Event("door.open-2"), Event("_x")), 10.0)),
        ("and(android, sequel; 1s)", And((Event("android"), Event("sequel")), 1.0)),
    ],
)
def test_a_pattern_is_read_and_printed_back(text: str, pattern: Pattern) -> None:
    assert parse(text) == pattern
    assert parse(printed(pattern)) == pattern


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, 'a name, "!", "and(", "seq(" or "or(" is expected, not the end of the text'),
        ("and(a, b; 60x)", 12, 'there is no unit "x": write s, ms, min or h'),
        ("and(a, b)", 8, "and needs a window, like and(a, b; 60s)"),
        ("or(a, b; 3s)", 7, "or has no window: each instance of a part counts alone"),
        ("and(a, b; 0)", 10, "a window is longer than 0 and at most 30 days"),
        ("and(a, b; 1e999s)", 10, "a window is longer than 0 and at most 30 days"),
        ("and(a, b; soon)", 10, 'a duration is expected, like 60s or 2 min, not "s"'),
        ("and(a; 5s)", 0, "and combines at least two parts"),
        ("and(!a, !b; 5s)", 0, "and needs at least one part that is not negated"),
        (
            "or(a, !b)",
            6,
            "an absence has no instances: write a negation inside and or seq, not inside or",
        ),
        ("!a", 0, 'a negation stands inside "and" or "seq", like and(a, !b; 60s)'),
        ("and(a, !!b; 5s)", 8, "a negation cannot be negated: leave out both"),
        ("xor(a, b)", 0, 'there is no operator "xor": and, seq and or are known'),
        ("and a", 4, '"(" is expected after the operator and'),
        ("and(a, b; 5s", 12, '")" is expected, the end of the operator, not the end of the text'),
        ("a b", 2, '"b" comes after the end of the pattern'),
        ("and(a,, b; 5s)", 6, 'a name, "!", "and(", "seq(" or "or(" is expected, not ","'),
    ],
)
def test_an_error_points_at_the_character(text: str, position: int, problem: str) -> None:
    with pytest.raises(PatternError) as raised:
        parse(text)
    assert (raised.value.position, raised.value.problem) == (position, problem)
    assert str(raised.value) == f"character {position + 1} of the pattern: {problem}"


def test_the_mark_stands_below_the_place() -> None:
    with pytest.raises(PatternError) as raised:
        parse("and(a,\n    b; 5 parsecs)")
    assert raised.value.drawn().split("\n") == [
        "    b; 5 parsecs)",
        '         ^ there is no unit "parsecs": write s, ms, min or h',
    ]


def test_deep_and_long_patterns_are_refused() -> None:
    with pytest.raises(PatternError, match="inside one another"):
        parse("and(a, " * 1000)
    with pytest.raises(PatternError, match="at most"):
        parse("a" * (LONGEST + 1))


def patterns() -> st.SearchStrategy[Pattern]:
    names = st.sampled_from([A, B, C])
    windows = st.floats(0.001, 1e6)

    def operators(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
        parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
        absence = st.builds(Not, inner)
        return st.one_of(
            st.builds(Or, parts),
            st.builds(And, parts, windows),
            st.builds(lambda some, none, window: Seq((*some, none), window), parts, absence, windows),
        )

    return st.recursive(names, operators, max_leaves=8)


@given(patterns())
@settings(max_examples=100, deadline=None)
def test_every_pattern_survives_printing(pattern: Pattern) -> None:
    assert parse(printed(pattern)) == pattern


@given(st.text(alphabet="abdenoqrs(),;! 0123m", max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        list(event_names(parse(text)))
    except PatternError as error:
        assert 0 <= error.position <= len(text)
        assert "^" in error.drawn()
