"""When each link changes again, as the intake adds it to the changes of links."""

import random
from typing import Any

import pyarrow as pa
import pytest

from orchestrator.results.truth import DERIVED, LINKS

TYPES = (pa.int64(), pa.string(), pa.string(), pa.bool_(), pa.float64())
NAMES = ("t_ns", "src", "dst", "up", "cost")


def expected(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    following: dict[tuple[str, str], int] = {}
    found = []
    for row in sorted(rows, key=lambda row: (row[0], bool(row[3])), reverse=True):
        found.append((*row, following.get(row[1:3])))
        following[row[1:3]] = row[0]
    return found[::-1]


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([pa.array([row[n] for row in rows], kind) for n, kind in enumerate(TYPES)], list(NAMES))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_next_change_of_a_link(seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        (
            draw.randrange(6),
            draw.choice(["a", "b", None]),
            "c",
            draw.choice([True, False, None]),
            draw.random(),
        )
        for _ in range(seed)
    ]
    assert rows_of(DERIVED[LINKS].add(table_of(rows))) == expected(rows)


@pytest.mark.parametrize("seed", range(10))
def test_a_long_file_is_the_same_in_pieces(seed: int) -> None:
    draw = random.Random(seed)
    rows = [(t_ns, draw.choice("ab"), "c", draw.random() < 0.5, draw.random()) for t_ns in range(60)]
    settled: list[tuple[Any, ...]] = []
    rest = table_of([])
    for begin in range(0, 60, 10):
        piece, rest = DERIVED[LINKS].settled(pa.concat_tables([rest, table_of(rows[begin : begin + 10])]))
        settled += rows_of(piece)
        assert rest.num_rows <= 2
    settled += rows_of(DERIVED[LINKS].add(rest))
    assert sorted(settled) == expected(rows)


def test_links_that_never_change_again_do_not_pile_up() -> None:
    rows = [(t_ns, f"n{t_ns}", "c", True, 1.0) for t_ns in range(60)]
    settled, rest = DERIVED[LINKS].settled(table_of(rows))
    assert settled.num_rows == 60 and rest.num_rows == 0
