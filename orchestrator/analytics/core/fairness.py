"""How fairly a network serves the applications of a run: Jain's index over the shares that they got."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results import registry
from orchestrator.results.contribution import Figures, Metric, Rows
from orchestrator.results.spark import Subject, rounded

METRIC = Metric(
    "app_fairness",
    "Jain's index over the applications of a run, of what arrived over what was offered: 1 if all got the "
    "same share, 1/n if one of n got everything; only of runs with several applications that offered "
    "something. A source that saturates offers only what it was let make, so its "
    "share hides how little that was",
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
    """Returns what arrived over what was offered; None if the kind does not say, or nothing was offered."""
    for arrived, offered in (each.carried for each in registry.about(kind) if each.carried):
        if metrics.get(offered) and metrics.get(arrived) is not None:
            return float(metrics[arrived] / metrics[offered])
    return None


def jain(shares: Sequence[float]) -> float | None:
    """Returns (Σx)² / (n Σx²); None if nobody got anything."""
    squares = sum(share * share for share in shares)
    return rounded(sum(shares) ** 2 / (len(shares) * squares)) if squares else None


FAIRNESS = Figures(lambda reading: {}, _values, (METRIC,))
