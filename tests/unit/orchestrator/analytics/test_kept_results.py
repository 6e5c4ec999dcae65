"""Results that lie in a directory of tables are used only if they look like results."""

import copy
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analytics.core import airtime
from orchestrator.analytics.kept import is_result
from orchestrator.apps.dataflow.analytics import cost_truth, paths, recovery
from orchestrator.results.inputs import RunInput, read_run
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import known_run

COUNTS = ("emitted", "delivered", "duplicates", "in_flight_at_end", "lost", "shed", "switches")
SHARES = ("loss_ratio", "shed_ratio", "network_loss_ratio", "source_sink_connected_ratio")
RATES = ("throughput_fps", "throughput_kbps", "goodput_fps", "goodput_kbps", "offered_fps")
LATENCIES = [f"latency_{name}_s" for name in ("mean", "p50", "p95", "p99", "max")]
ANALYSES = [metric.name for figures in (paths, recovery, cost_truth) for metric in figures.METRICS]
AIRTIME = [metric.name for metric in airtime.METRICS]
KEPT: dict[str, Any] = {
    "stamp": "7 x",
    "metrics": {"routing_overhead": None, "routing_overhead_bps": None, **dict.fromkeys(AIRTIME)},
    "series": {
        "telemetry": {"records": 3},
        "nodes": {"a": {"records": 3}},
        "window_s": [0.0, None],
        "ended_s": 9.0,
        "positions": {"a": [[0.0, 1.0]]},
        "links": [],
        "neighbours": [[0.0, 1.5, 1, 2]],
        "boots": {"a": [[0.0, 9.0]]},
        "faults": [],
    },
    "apps": {
        "query": {
            "kind": "query",
            "metrics": {
                **dict.fromkeys((*SHARES, *RATES, *LATENCIES, *ANALYSES)),
                **dict.fromkeys((*COUNTS, "paths_used", "faults_unrecovered"), 1),
                "switches_per_min": 0.6,
                "operators": {"a": {"arrived_fps": 1.0}},
                "fates": {"delivered": 1},
                "no_route_s": 0.0,
            },
            "series": {
                "operator_faults": {},
                "never_emitted": 0,
                "latency_quantiles_s": [0.5],
                "moves": [],
                "deliveries": [[1, 2, 3]],
                "routes": [[0.5, "a/0", "b", None]],
                "connectivity": [[0.0, 9.0, True]],
                "hops": [[0.0, 3], [1.0, None]],
                "recoveries": [["crash", "a", 1.0, None, 2.0]],
                "cost_errors": [[1.0, 0.5]],
            },
        }
    },
}
QUERY = ("apps", "query")


@pytest.fixture
def run(tmp_path: Path) -> RunInput:
    return read_run(RunDirectory(known_run(tmp_path).write()))


def test_what_was_computed_is_used_again(run: RunInput) -> None:
    assert is_result(KEPT, run)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*QUERY, "metrics", "loss_ratio"), "<b>none</b>"),
        ((*QUERY, "metrics", "fates"), [1]),
        (("series", "positions"), {"a": "here"}),
        ((*QUERY, "series", "routes"), [[0.5]]),
        (("series", "nodes"), None),
        ((*QUERY, "series", "latency_quantiles_s"), [{}]),
        (("apps",), {}),
    ],
)
def test_what_is_odd_is_computed_anew(run: RunInput, path: tuple[str, ...], value: Any) -> None:
    odd = copy.deepcopy(KEPT)
    *outer, last = path
    place = odd
    for name in outer:
        place = place[name]
    place[last] = value
    assert not is_result(odd, run)
    del place[last]
    assert not is_result(odd, run)
    assert not is_result(None, run)
