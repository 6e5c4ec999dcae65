"""Has routing converged? By what the nodes know, held against ground truth."""

from math import nan

from orchestrator.backends.readiness import DEPENDABLE, SETTLED_S, Settling, connected, shortfalls

# a - b - c, d alone; e hears a badly, and a does not hear f.
LINKS = {
    "a": {"b": 1.0, "e": DEPENDABLE + 1},
    "b": {"a": 1.5, "c": 2.0},
    "c": {"b": 2.0},
    "d": {},
    "e": {"a": DEPENDABLE + 1},
    "f": {"a": 1.0},
}


def test_only_links_that_can_be_relied_on_in_both_directions_connect() -> None:
    assert connected(LINKS) == {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"], "d": [], "e": [], "f": []}


def test_who_knows_too_few_is_named_with_those_it_does_not_know() -> None:
    reaches = {"a": ("b", "c"), "b": ("a",), "c": (), "d": ()}
    assert shortfalls(reaches, LINKS, 1.0) == {
        "b": "routing knows no way to 1 of 2 nodes (c)",
        "c": "routing knows no way to 2 of 2 nodes (a, b)",
    }
    assert list(shortfalls(reaches, LINKS, 0.5)) == ["c"]


def test_a_protocol_that_is_not_waited_for_needs_nothing() -> None:
    assert shortfalls({"a": (), "b": ()}, LINKS, 0.0) == {}


def test_nobody_is_ready_before_ground_truth_has_spoken() -> None:
    assert list(shortfalls({"a": (), "b": ("a",)}, {}, 0.9)) == ["a", "b"]
    assert shortfalls({"a": ()}, {}, 0.0) == {}
    assert shortfalls({"a": ()}, {"a": {}}, 0.9) == {}


def test_to_know_more_than_is_dependable_is_no_shortfall_and_a_long_list_is_cut() -> None:
    assert shortfalls({"d": ("a",), "e": ("a", "b", "c")}, LINKS, 1.0) == {}
    star = {"hub": {f"n{i}": 1.0 for i in range(9)}, **{f"n{i}": {"hub": 1.0} for i in range(9)}}
    assert shortfalls({"hub": ("n0",)}, star, 0.9) == {
        "hub": "routing knows no way to 8 of 9 nodes (n1, n2, n3, n4, n5, …)"
    }


def settled_at(share: float, *costs: float) -> float | None:
    """When costs that are looked at every second have settled."""
    settling = Settling(share)
    for now, cost in enumerate(costs):
        if settling.settled(float(now), {"a": {"b": cost, "c": 1.0}}):
            return now
    return None


def test_costs_have_settled_when_none_changed_much_for_a_while() -> None:
    assert settled_at(0.1, *[1.0] * 9) == SETTLED_S
    assert settled_at(0.1, 53, 20, 8, 5, 3, 2, 1.05, *[1.0] * 9) == 6 + SETTLED_S
    assert settled_at(0.1, *(1.05**n for n in range(40))) is None, "slow changes add up within 5 s"
    assert settled_at(0.5, *(1.05**n for n in range(40))) == SETTLED_S
    assert settled_at(0.1, *[1.0, 1.2] * 20) is None
    assert settled_at(0.1, *[nan] * 9) is None


def test_a_cost_that_comes_or_goes_is_a_change() -> None:
    settling = Settling(0.1)
    for now in range(4):
        assert not settling.settled(now, {"a": {"b": 1.0}})
    assert not settling.settled(4.0, {"a": {}})
    assert not settling.settled(8.0, {"a": {}})
    assert settling.settled(9.0, {"a": {}})
