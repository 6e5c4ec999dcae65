"""How fairly a network serves the applications of a run: Jain's index over the shares that they got."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results import registry
from orchestrator.results.contribution import Figures, Metric, Rows
from orchestrator.results.spark import Subject, rounded

METRIC = Metric(
    "app_fairness",
    "Jain's index over the applications of a run, of the share of what should have arrived that did "
    "(queries: 1 − `loss_ratio`, flows: `flow_delivery_ratio`): 1 if all got the same share, 1/n if one of n "
    "got everything; only of runs with several applications that sent something. A source that saturates "
    "sends only what it was let make, so its share hides how little that was",
    better="more",
    averaged=True,
    optional=True,
)


def _values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    if len(subject.run.apps) < 2:
        return {}
    found = (_share(subject.run.apps[name].kind, metrics) for name, metrics in subject.of_apps.items())
    shares = [share for share in found if share is not None]
    return {METRIC.name: jain(shares) if len(shares) > 1 else None}


def _share(kind: str, metrics: Mapping[str, Any]) -> float | None:
    """Returns what arrived of what should have; None if the kind does not say, or nothing was sent."""
    found = (each.share(metrics) for each in registry.about(kind) if each.share)
    return next((share for share in found if share is not None), None)


def jain(shares: Sequence[float]) -> float | None:
    """Returns (Σx)² / (n Σx²); None if nobody got anything."""
    squares = sum(share * share for share in shares)
    return rounded(sum(shares) ** 2 / (len(shares) * squares)) if squares else None


FAIRNESS = Figures(lambda reading: {}, _values, (METRIC,))
