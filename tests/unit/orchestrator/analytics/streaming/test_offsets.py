"""What is new is handed on once, whatever is killed meanwhile; a run that goes on, whenever it has grown."""

import json
import random

import pytest

from orchestrator.analytics.streaming.offsets import (
    GROWTH,
    Arrival,
    Mark,
    Marks,
    Offset,
    beginning,
    between,
    following,
)


def batch(start: Offset, seen: Marks, made_by: str = "v", most: int = 99) -> tuple[list[Arrival], Offset]:
    end = following(start, seen, made_by, most)
    return list(between(start, end)), json.loads(json.dumps(end))


def test_a_run_that_ended_is_handed_on_once() -> None:
    first, offset = batch(beginning(), {"e/a": "1-x", "e/b": "1-y"})
    assert first == [Arrival("e/a", True), Arrival("e/b", True)]
    assert following(offset, {"e/a": "1-x", "e/b": "1-y"}, "v", 99) is offset
    second, offset = batch(offset, {"e/a": "1-x", "e/b": "1-y", "e/c": "1-z"})
    assert second == [Arrival("e/c", True)]


def test_another_verdict_is_new() -> None:
    _, offset = batch(beginning(), {"e/a": "1-x"})
    assert batch(offset, {"e/a": "2-x"})[0] == [Arrival("e/a", True)]


@pytest.mark.parametrize(
    ("known", "now", "due"),
    [
        (None, 0, False),
        (None, 1, True),
        (100, 100, False),
        (100, int(100 * GROWTH) - 1, False),
        (100, int(100 * GROWTH), True),
        (100, 50, True),  # another run under the same name
        (100, "1-x", True),
        ("1-x", 100, False),  # its verdict is being replaced
    ],
)
def test_a_run_that_goes_on_is_taken_in_when_it_has_grown(known: Mark | None, now: Mark, due: bool) -> None:
    start = beginning() if known is None else following(beginning(), {"e/a": known}, "v", 1)
    assert bool(batch(start, {"e/a": now})[0]) is due


def test_a_batch_has_so_many_runs_and_the_next_one_the_rest() -> None:
    seen: Marks = {f"e/{number:02d}": "1-x" for number in range(10)}
    offset, taken = beginning(), []
    while (end := following(offset, seen, "v", 4)) != offset:
        arrived = list(between(offset, end))
        assert len(arrived) <= 4
        taken += [each.run for each in arrived]
        offset = end
    assert taken == sorted(seen)


def test_a_removed_run_makes_no_batch_and_is_forgotten_with_the_next() -> None:
    _, offset = batch(beginning(), {"e/a": "1-x", "e/b": "1-y"})
    assert batch(offset, {"e/b": "1-y"}) == ([], offset)
    arrived, offset = batch(offset, {"e/b": "1-y", "e/c": "1-z"})
    assert arrived == [Arrival("e/c", True)]
    assert sorted(offset["runs"]) == ["e/b", "e/c"]


def test_other_code_or_an_older_offset_hands_every_run_on_again() -> None:
    seen: Marks = {"e/a": "1-x", "e/b": 10}
    _, offset = batch(beginning(), seen)
    assert [each.run for each in batch(offset, seen, made_by="w")[0]] == ["e/a", "e/b"]
    older = {**offset, "version": 0}
    assert [each.run for each in batch(older, seen)[0]] == ["e/a", "e/b"]
    strange = {"n": 7}
    assert [each.run for each in batch(strange, seen)[0]] == ["e/a", "e/b"]


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_moment_every_run_arrives(seed: int) -> None:
    """As Spark does it: the offset is noted, then the batch is handed on, then it is noted as done."""
    drawn = random.Random(seed)
    seen: Marks = {}
    noted, done, entered = beginning(), beginning(), {}  # what is on disk

    def go_on() -> None:
        nonlocal noted, done
        if noted == done:
            noted = following(done, seen, "v", drawn.randint(1, 5))
            if drawn.random() < 0.3:
                return  # killed after noting
        for each in between(done, noted):
            if drawn.random() < 0.2:
                return  # killed within a batch
            entered[each.run] = seen[each.run]  # replaces what the store has of the run
        if drawn.random() < 0.3:
            return  # killed before noting that it is done
        done = noted

    for number in range(60):
        if number < 40:
            run = f"e/{drawn.randrange(12)}"
            before = seen.get(run, 0)
            seen[run] = f"{number}-x" if drawn.random() < 0.4 or isinstance(before, str) else before + number
        go_on()
    seen = {run: f"end-{mark}" for run, mark in seen.items()}
    for _ in range(400):
        go_on()
    assert entered == seen
