"""Declares the files of ground truth that the radio writes, and their columns."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT, Columns

if TYPE_CHECKING:
    import pyarrow as pa

LINKS, POSITIONS, DELIVERIES = "links.jsonl", "positions.jsonl", "deliveries.jsonl"
AIRTIME = "airtime.jsonl"

TRUTH: Mapping[str, Columns] = {
    LINKS: {"t_ns": COUNT, "src": TEXT, "dst": TEXT, "up": FLAG, "cost": REAL},
    POSITIONS: {"node": TEXT, "t_ns": COUNT, "x": REAL, "y": REAL},
    DELIVERIES: {
        "t_ns": COUNT,
        "src": TEXT,
        "dst": TEXT,
        "attempted": COUNT,
        "delivered": COUNT,
        "expected": REAL,
        "snr_db": REAL,
    },
    AIRTIME: {"t_ns": COUNT, "node": TEXT, "sent_ns": COUNT},
}

NEXT = "next_ns"
"""Of a change of a link: when the same link changes again; null if it does not."""


def _with_next(links: "pa.Table") -> "pa.Table":
    """Adds ``NEXT`` to the rows of ``LINKS``, in the order of time.

    Of changes of one link at one time, going down comes before coming up; of two that are alike, the one that
    was written first lasts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbered = links.append_column("up_then", pc.fill_null(links["up"], False)).append_column(
        "place", pa.array(range(links.num_rows), pa.int64())
    )
    in_time = [("t_ns", "ascending"), ("up_then", "ascending"), ("place", "descending")]
    by_link = numbered.sort_by([("src", "ascending"), ("dst", "ascending"), *in_time]).combine_chunks()
    if not links.num_rows:
        return links.append_column(NEXT, pa.array([], pa.int64()))
    alike = [_equal(by_link[end][:-1], by_link[end][1:]) for end in ("src", "dst")]
    follows = pc.if_else(pc.and_(*alike), by_link["t_ns"][1:], pa.scalar(None, pa.int64()))
    following = pa.chunked_array([*follows.chunks, pa.nulls(1, pa.int64())])
    found = by_link.append_column(NEXT, following).sort_by(in_time)
    return found.drop_columns(["up_then", "place"])


def _equal(left: "pa.ChunkedArray", right: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Compares texts; null equals null."""
    import pyarrow.compute as pc

    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.fill_null(pc.equal(left, right), both_null)


class Derived(NamedTuple):
    """Columns that are added to a file when it is read. ``add`` adds them; ``settled`` does so for the
    beginning of a long file: it returns the rows that nothing further on changes, and the others as they
    were.
    """

    columns: Columns
    add: Callable[["pa.Table"], "pa.Table"]
    settled: Callable[["pa.Table"], tuple["pa.Table", "pa.Table"]]


def _settled_links(links: "pa.Table") -> tuple["pa.Table", "pa.Table"]:
    """A row is settled if its link has changed again, or if most rows wait for that: then it is not believed
    that they are links of a network.
    """
    import pyarrow.compute as pc

    found = _with_next(links)
    waits = pc.is_null(found[NEXT])
    if 2 * pc.sum(waits).as_py() > found.num_rows:
        return found, links.slice(0, 0)
    return found.filter(pc.invert(waits)), found.filter(waits).drop_columns([NEXT])


DERIVED: Mapping[str, Derived] = {LINKS: Derived({NEXT: COUNT}, _with_next, _settled_links)}
"""By file."""


def columns_of(file: str) -> Columns:
    """Returns the columns of a file of the ground truth, with those that are added."""
    return {**TRUTH[file], **(DERIVED[file].columns if file in DERIVED else {})}
