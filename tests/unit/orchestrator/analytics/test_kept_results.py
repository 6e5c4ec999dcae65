"""Results that lie in a directory of tables are used only if they look like results."""

import copy
from typing import Any

import pytest

from orchestrator.analytics.kept import is_result

COUNTS = ("emitted", "delivered", "duplicates", "in_flight_at_end", "lost", "switches")
SHARES = ("loss_ratio", "source_sink_connected_ratio", "routing_overhead_bps", "routing_overhead")
RATES = ("throughput_fps", "throughput_kbps", "goodput_fps")
LATENCIES = [f"latency_{name}_s" for name in ("mean", "p50", "p95", "p99", "max")]
KEPT: dict[str, Any] = {
    "stamp": "7 x",
    "metrics": {
        **dict.fromkeys(COUNTS, 1),
        **dict.fromkeys((*SHARES, *RATES, *LATENCIES)),
        "fates": {"delivered": 1},
        "no_route_s": 0.0,
    },
    "operator_faults": {},
    "telemetry": {"records": 3},
    "nodes": {"a": {"records": 3}},
    "latency_quantiles_s": [0.5],
    "series": {
        "window_s": [0.0, None],
        "ended_s": 9.0,
        "deliveries": [[1, 2, 3]],
        "routes": [[0.5, "a/0", "b", None]],
        "connectivity": [[0.0, 9.0, True]],
        "positions": {"a": [[0.0, 1.0]]},
        "links": [],
        "neighbours": [[0.0, 1.5, 1, 2, 3]],
        "boots": {"a": [[0.0, 9.0]]},
        "faults": [],
    },
}


def test_what_was_computed_is_used_again() -> None:
    assert is_result(KEPT)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metrics", "loss_ratio"), "<b>none</b>"),
        (("metrics", "fates"), [1]),
        (("series", "positions"), {"a": "here"}),
        (("series", "routes"), [[0.5]]),
        (("nodes",), None),
        (("latency_quantiles_s",), [{}]),
    ],
)
def test_what_is_odd_is_computed_anew(path: tuple[str, ...], value: Any) -> None:
    odd = copy.deepcopy(KEPT)
    *outer, last = path
    place = odd
    for name in outer:
        place = place[name]
    place[last] = value
    assert not is_result(odd)
    assert not is_result(None)
