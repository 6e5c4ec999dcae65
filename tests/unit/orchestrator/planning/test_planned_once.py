"""Nothing about a run is worked out twice: from the file to the backend, each cell is planned once."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.apps.dataflow import application as dataflow
from orchestrator.apps.dataflow import checks
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.invocation import Invocation
from orchestrator.planning import load, semantics, sweep
from orchestrator.planning.load import load_planned
from orchestrator.spec.topology import Topology
from tests.unit.scripted_backend import Stage
from tests.unit.specs import chain, topology


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of these is called."""
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            counted[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, counting)

    count(checks, "arrange")
    count(load, "expand")
    count(sweep, "plan_run")
    count(semantics, "planned_faults")
    count(semantics, "backend_findings")
    original = dataflow.DataflowApplication.plan

    def planning(self: Any, entry: Any) -> Any:
        counted["plan"] += 1
        return original(self, entry)

    monkeypatch.setattr(dataflow.DataflowApplication, "plan", planning)
    return counted


def written(folder: Path, **changes: Any) -> Path:
    (folder / "field.yaml").write_text(yaml.safe_dump(topology()))
    document = {"name": "demo", "topology": "field.yaml", "query": chain(1), "duration": "10s"}
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(document | changes))
    return file


async def run(file: Path, root: Path) -> int:
    experiment, cells = load_planned(file)
    with Invocation.create(experiment, cells, root, "once") as invocation:
        await invocation.run(1, Stage(), Interruption(print), lambda *_: None, ["rove"])
    return len(cells)


def test_one_cell(tmp_path: Path, calls: Counter[str]) -> None:
    faults = [{"at": "1s", "for": "2s", "crash": {"operator": "op1"}}]
    assert asyncio.run(run(written(tmp_path, faults=faults), tmp_path / "runs")) == 1
    once = ("arrange", "expand", "plan_run", "planned_faults", "backend_findings", "plan")
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)


def test_a_sweep_is_expanded_once(tmp_path: Path, calls: Counter[str]) -> None:
    assert asyncio.run(run(written(tmp_path, sweep={"seed": [1, 2, 3]}), tmp_path / "runs")) == 3
    assert calls["expand"] == 1
    assert calls["arrange"] == calls["plan"] == calls["planned_faults"] == 3


def test_a_topology_is_validated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validated: list[str] = []
    original = Topology.__pydantic_validator__

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(original, name)

        def validate_python(self, value: Any, **named: Any) -> Any:
            validated.append(type(value).__name__)
            return original.validate_python(value, **named)

    monkeypatch.setattr(Topology, "__pydantic_validator__", Counting())
    planned = load_planned(written(tmp_path, sweep={"seed": [1, 2]}))
    assert validated == ["dict"]
    first, second = (cell.experiment.topology for cell in planned.cells)
    assert first is second is planned.experiment.topology
