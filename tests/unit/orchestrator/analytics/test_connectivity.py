"""When sources could have reached a sink, from changes of directed links."""

from pathlib import Path

from orchestrator.analytics.core.connectivity import Interval, LinkChange, connected_intervals, read_changes


def intervals(*changes: LinkChange) -> list[Interval]:
    return connected_intervals(changes, ["a"], ["z"], 0, 100)


def test_without_links_nothing_is_ever_connected() -> None:
    assert intervals() == [Interval(0, 100, False)]


def test_a_path_over_another_node_connects_until_one_of_its_links_breaks() -> None:
    found = intervals(
        (0, "a", "m", True),
        (10, "m", "z", True),
        (30, "a", "m", False),
        (30, "m", "a", True),
        (80, "a", "z", True),
    )
    assert found == [
        Interval(0, 10, False),
        Interval(10, 30, True),
        Interval(30, 80, False),
        Interval(80, 100, True),
    ]


def test_a_link_in_the_other_direction_does_not_help() -> None:
    assert intervals((0, "z", "a", True)) == [Interval(0, 100, False)]


def test_changes_that_leave_the_answer_the_same_make_no_interval() -> None:
    found = intervals(
        (0, "a", "z", True), (20, "a", "b", True), (40, "a", "b", False), (120, "a", "z", False)
    )
    assert found == [Interval(0, 100, True)]


def test_every_source_must_reach_some_sink() -> None:
    changes = [(0, "a", "y", True), (50, "b", "z", True)]
    found = connected_intervals(changes, ["a", "b"], ["y", "z"], 0, 100)
    assert found == [Interval(0, 50, False), Interval(50, 100, True)]


def test_what_was_before_the_run_counts_from_its_start() -> None:
    assert connected_intervals([(0, "a", "z", True)], ["a"], ["z"], 10, 20) == [Interval(10, 20, True)]


def test_only_what_comes_up_or_goes_down_is_read_not_new_costs_or_a_torn_line(tmp_path: Path) -> None:
    links = tmp_path / "links.jsonl"
    assert list(read_changes(links)) == []
    line = '{{"t_ns":{},"src":"a","dst":"z","up":{},"cost":{}}}\n'
    lines = ((1, "false", "null"), (2, "true", "1.0"), (3, "true", "1.5"), (4, "false", "null"))
    links.write_text("".join(line.format(*values) for values in lines) + '{"t_ns":5,"src":"a"')
    assert list(read_changes(links)) == [(2, "a", "z", True), (4, "a", "z", False)]
