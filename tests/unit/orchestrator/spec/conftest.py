"""Texts and schemas list Rove's own operators: those that other tests registered are hidden."""

import pytest

from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.extensions.inherited import VARIABLE


@pytest.fixture(autouse=True)
def only_own_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPERATORS, "_registered", {})
    monkeypatch.delenv(VARIABLE, raising=False)
