"""Finds applications that delivered nothing although source and sink were connected: no result to pass over.

It is a note and makes no run invalid: a protocol or placement that carries nothing is a result, and leaving
such runs out would make what is left look better.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.results import registry

GOOD_PART = 0.5
"""The share of the measured time in which there must have been a way for silence to be worth a note."""


def silences(apps: Mapping[str, Mapping[str, Any]], window_s: float, relays: bool = True) -> list[str]:
    """Returns a note for each silent application. ``apps``: their ``kind`` and ``metrics`` by name.
    ``relays``: whether nodes relay for others, so that several hops make a way.
    """
    found = []
    for name, app in apps.items():
        share, whose = _way(app["metrics"], window_s, relays)
        if share < GOOD_PART or not _silent(app["kind"], app["metrics"]):
            continue
        who = f"{name}: nothing" if len(apps) > 1 else "nothing"
        found.append(
            f"{who} was delivered in the measured window, although {whose} had a way from source to sink for "
            f"{share:.0%} of it: find out why before you use this (rove explain, the routes of the nodes)"
        )
    return found


def _silent(kind: str, metrics: Mapping[str, Any]) -> bool:
    signs = [metric.name for metric in registry.metrics(kind).values() if metric.activity]
    return bool(signs) and not any(metrics.get(name) for name in signs)


def _way(metrics: Mapping[str, Any], window_s: float, relays: bool) -> tuple[float, str]:
    """Returns for which share of the window there was a way, and who says so: ground truth, or else what the
    sources could choose from. Without relays only the latter is about direct links alone.
    """
    true = metrics.get("source_sink_connected_ratio")
    if true is not None and relays:
        return true, "the radio"
    lacking = metrics.get("no_route_s")
    if lacking is None or window_s <= 0:
        return 0.0, ""
    return max(0.0, 1 - lacking / window_s), "routing" if relays else "the stream, over direct links,"
