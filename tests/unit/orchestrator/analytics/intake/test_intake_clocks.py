"""Times of records are converted to the orchestrator's."""

from typing import Any

from orchestrator.analytics.intake.clocks import corrected
from orchestrator.clocks.correction import FIRST_NS, LAST_NS, Piece, Pieces
from orchestrator.results.inputs import LATEST_NS

SECOND = 10**9
SOURCE = "camera/0"


def ahead(offset_ns: int) -> Pieces:
    return (Piece(FIRST_NS, LAST_NS, 0, offset_ns, 0.0),)


def record(**fields: Any) -> dict[str, Any]:
    return {"app": "query", "t_ns": 10 * SECOND, **fields}


def test_times_that_hang_on_others_follow_them() -> None:
    """How old costs were stays; the latency of a picture is between the source's clock and the sink's."""
    births = {("query", SOURCE): ahead(-SECOND)}
    decision = corrected(record(taken_ns=9 * SECOND), ahead(3 * SECOND), births)
    assert (decision["t_ns"], decision["taken_ns"]) == (7 * SECOND, 6 * SECOND)
    seen = corrected(record(origin=SOURCE, latency_ns=4 * SECOND + 7), ahead(3 * SECOND), births)
    assert (seen["t_ns"], seen["latency_ns"]) == (7 * SECOND, 7)
    unknown = corrected(record(origin="else/0", latency_ns=5 * SECOND), ahead(3 * SECOND), births)
    assert unknown["latency_ns"] == 2 * SECOND
    delivered = corrected(record(origin=SOURCE, born_ns=5 * SECOND), ahead(3 * SECOND), births)
    assert delivered["born_ns"] == 6 * SECOND
    assert corrected(record(), (), births) == record()


def test_a_lie_about_a_clock_stays_within_bounds() -> None:
    assert corrected(record(), ahead(2**62), {})["t_ns"] == 0
    assert corrected(record(), ahead(-(2**62)), {})["t_ns"] == LATEST_NS
