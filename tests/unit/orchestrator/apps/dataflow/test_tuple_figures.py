"""Sums of tuples by sink and fate add up to those of the application."""

from typing import Any

import pytest

from orchestrator.apps.dataflow.analytics.tuple_figures import (
    arrival_figures,
    latency_figures,
    summed,
    tuple_figures,
)

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]


def row(sink: str, fate: str, tuples: int, **others: Any) -> dict[str, Any]:
    nothing = {"duplicates": 0, "latency_sum_ns": None, "latency_quantiles_ns": None}
    arrived = {"arrivals": 0, "bytes": None, "first": None, "last_ns": None}
    return {"sink": sink, "fate": fate, "in_window": True, "tuples": tuples, **nothing, **arrived, **others}


def delivered(sink: str, tuples: int, first_ns: int, last_ns: int, **others: Any) -> dict[str, Any]:
    first = {"delivered_ns": first_ns, "origin": "cam/0", "tau": 1, "delivered_size": 100}
    found = {"arrivals": tuples, "bytes": 100 * tuples, "first": first, "last_ns": last_ns}
    latency = {"latency_sum_ns": 10 * tuples, "latency_quantiles_ns": [10.0] * 201}
    return row(sink, "delivered", tuples, **found, **latency, **others)


ROWS = [
    delivered("left", 3, 5_000, 9_000, duplicates=2),
    delivered("right", 2, 4_000, 8_000),
    row("left", "lost_in_transit", 1),
    row("right", "lost_in_transit", 1),
    row("right", "in_flight_at_end", 1),
    {**delivered("left", 4, 6_000, 10_000), "in_window": False},
    {**row("left", "never_emitted", 9), "in_window": False},
]


def test_sinks_add_up() -> None:
    total = summed(ROWS, [1.0])
    assert (total.owed, total.delivered, total.duplicates) == (8, 5, 2)
    assert total.fates == {"delivered": 5, "in_flight_at_end": 1, "lost_in_transit": 2}
    assert list(total.fates) == sorted(total.fates)
    assert total.latency_quantiles_ns == [1.0]  # those of sinks cannot be added
    # Arrivals in the window count whenever the tuple was born.
    assert (total.arrivals, total.bytes, total.last_ns) == (9, 900, 10_000)
    assert total.first is not None and total.first["delivered_ns"] == 4_000
    figures = tuple_figures(total)
    assert (figures["emitted"], figures["lost"], figures["loss_ratio"]) == (8, 2, round(2 / 7, 9))


def test_one_sink_has_its_own_latency() -> None:
    found = summed([each for each in ROWS if each["sink"] == "right"], None)
    assert (found.owed, found.delivered) == (4, 2)
    assert latency_figures(found)["latency_p50_s"] == 1e-8
    assert latency_figures(found)["latency_mean_s"] == 1e-8


def test_without_tuples_there_is_no_latency() -> None:
    nothing = summed([], None)
    assert tuple_figures(nothing)["loss_ratio"] is None
    assert set(latency_figures(nothing).values()) == {None}
    assert arrival_figures(nothing, 10**9)["goodput_fps"] == 0
