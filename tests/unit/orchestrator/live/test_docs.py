"""docs/live.md lists the metrics and alerts that there are."""

import pytest

from orchestrator.live.docs import FILE, written
from orchestrator.live.metrics import metrics
from orchestrator.live.prometheus.rules import ALERTS

pytestmark = pytest.mark.unit


def test_the_lists_are_up_to_date() -> None:
    text = FILE.read_text()
    assert written(text) == text, "python -m orchestrator.live.docs --write"
    assert all(f"| `{name}` |" in text for name in metrics())
    assert all(f"| `{alert.name}` |" in text for alert in ALERTS)
    assert "{{" not in text
