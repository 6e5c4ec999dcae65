"""What docs/extensions.md shows works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from node_agent.apps.dataflow.operators.registry import OPERATORS, QUERIES
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.linkstate.registry import LINK_STATE_READERS
from orchestrator.apps.dataflow.spec.placement import PLACEMENT_POLICIES
from tests.extension.harness import ROOT, Rove, run_of, written

MANUAL = (ROOT / "docs" / "extensions.md").read_text()
EXAMPLES = re.findall(r"```python\n# (\S+\.py)\n(.*?)```\n```yaml\n(.*?)```", MANUAL, flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert [name for name, _, _ in EXAMPLES] == ["my_policy.py", "my_placement.py", "my_reader.py"]


@pytest.mark.parametrize(("name", "code", "section"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_an_example_runs(rove: Rove, tmp_path: Path, name: str, code: str, section: str) -> None:
    (tmp_path / name).write_text(code)
    changes: dict[str, Any] = yaml.safe_load(section)
    run_of(rove, written(tmp_path, replicas=2, warmup="3s", **changes))


def test_a_declared_policy_runs(rove: Rove, tmp_path: Path) -> None:
    (name, code, _), *_ = EXAMPLES
    (declared,) = re.findall(
        r"```python\n(from node_agent.switching import SwitchingPolicy.*?)```", MANUAL, re.S
    )
    (tmp_path / name).write_text(code + declared)
    run = run_of(rove, written(tmp_path, replicas=2, switching={"policy": "my_policy.py:POLICY"}))
    assert rove("explain", str(run), "--at", "2s").code == 0


def test_every_registry_is_listed() -> None:
    for registry in (POLICIES, PLACEMENT_POLICIES, OPERATORS, QUERIES, LINK_STATE_READERS):
        assert f"`{registry.group}`" in MANUAL
