"""Recomputes how long an application needed to recover from the faults of a run."""

import json
from typing import Any

import pandas as pd

from tests.independent.plan import Query
from tests.independent.reading import Run

ENDS = {
    "restart": "crash",
    "unsilence": "silence",
    "heal": "partition",
    "mend": "cut",
    "recover": "degrade",
    "release": "move",
}
Fault = tuple[int, int | None]


def faults_of(run: Run) -> list[Fault]:
    """Returns when each fault began and ended, by the run's events."""
    path = run.directory / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found: list[tuple[str, str, int, int | None]] = []
    for event in map(json.loads, lines):
        if event["kind"] != "fault":
            continue
        action, node = event.get("action") or event["deed"], event["node"]
        if action not in ENDS:
            found.append((action, node, event["t_ns"], None))
            continue
        for place, (what, whom, begin, end) in enumerate(found):
            if (what, whom, end) == (ENDS[action], node, None):
                found[place] = (what, whom, begin, event["t_ns"])
    return [(begin, end) for _, _, begin, end in found]


def metrics_of(run: Run, query: Query, tuples: pd.DataFrame) -> dict[str, Any]:
    faults = faults_of(run)
    began = [_until_all_sinks(query, tuples, begin) for begin, _ in faults if run.inside(begin)]
    ended = [
        _until_all_sinks(query, tuples, end)
        for begin, end in faults
        if run.inside(begin) and end is not None and run.inside(end)
    ]
    recovered = [each for each in began if each is not None]
    resumed = [each for each in ended if each is not None]
    return {
        "recovery_mean_s": sum(recovered) / len(recovered) / 1e9 if recovered else None,
        "recovery_max_s": max(recovered) / 1e9 if recovered else None,
        "resumed_mean_s": sum(resumed) / len(resumed) / 1e9 if resumed else None,
        "faults_unrecovered": len(began) - len(recovered),
    }


def _until_all_sinks(query: Query, tuples: pd.DataFrame, since_ns: int) -> int | None:
    """Returns how long it took until every sink had a tuple that was born later; None if one got none."""
    delivered = tuples[tuples["fate"] == "delivered"]
    later = delivered[delivered["born_ns"] >= since_ns]
    first = [later.loc[later["sink"] == sink, "delivered_ns"].min() for sink in query.sinks]
    return None if any(pd.isna(each) for each in first) else int(max(first)) - since_ns
