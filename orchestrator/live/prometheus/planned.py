"""What the recorded plans of a run's applications say: how many replicas there are, how long windows are."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from orchestrator.live.facts import RunFacts, number
from orchestrator.planning.application import application
from orchestrator.spec.application import APPLICATIONS

OPERATOR = "operator"
"""The role of what is between sources and sinks."""


class Planned(NamedTuple):
    """``replicas``: the most that an operator between sources and sinks has, over all applications; 0 if
    there is no such operator. ``windows``: by application, for how long its operators gather tuples.
    """

    replicas: int
    windows: Mapping[str, float]


def planned(facts: RunFacts) -> Planned:
    most, windows = 0, {}
    for name, app in facts.apps.items():
        if app.kind not in APPLICATIONS:
            continue
        view = application(app.kind).view(name, app.document, lambda _, t_ns: t_ns / 1e9)
        head = view.head() if view is not None else {}
        most = max(most, _most_replicas(head))
        if "window_s" in head:
            windows[name] = number(head["window_s"], 0.0)
    return Planned(most, windows)


def _most_replicas(head: Mapping[str, Any]) -> int:
    between = {each.get("name") for each in _rows(head, "operators") if each.get("role") == OPERATOR}
    replicas = Counter(str(each.get("operator")) for each in _rows(head, "replicas"))
    return max((count for name, count in replicas.items() if name in between), default=0)


def _rows(head: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Applications of other packages may have others, or none."""
    found = head.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
