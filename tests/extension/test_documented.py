"""What docs/extending.md shows works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extension.harness import ROOT, Rove, records, run_of, written

GUIDE = (ROOT / "docs" / "extending.md").read_text()
EXAMPLES = re.findall(r"```python\n# (\S+\.py)\n(.*?)```\n```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
OF_TOPOLOGIES = ("my_mobility.py", "my_losses.py")
OF_EXPERIMENTS = ("my_policy.py", "my_placement.py", "my_reader.py")


def test_there_are_examples() -> None:
    assert [name for name, _, _ in EXAMPLES] == [*OF_TOPOLOGIES, *OF_EXPERIMENTS]


@pytest.mark.parametrize(("name", "code", "section"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_an_example_runs(rove: Rove, tmp_path: Path, name: str, code: str, section: str) -> None:
    (tmp_path / name).write_text(code)
    changes: dict[str, Any] = yaml.safe_load(section)
    if name in OF_EXPERIMENTS:
        run_of(rove, written(tmp_path, replicas=2, warmup="3s", **changes))
        return
    run = run_of(rove, written(tmp_path, changes))
    places = {(each["x"], each["y"]) for each in records(run / "radio" / "positions.jsonl")}
    assert (len(places) > 4) == ("mobility" in changes)


def test_a_declared_policy_runs(rove: Rove, tmp_path: Path) -> None:
    codes = {name: code for name, code, _ in EXAMPLES}
    blocks: list[str] = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    (declared,) = [block for block in blocks if block.startswith("from node_agent.switching")]
    (tmp_path / "my_policy.py").write_text(codes["my_policy.py"] + declared)
    run = run_of(rove, written(tmp_path, replicas=2, switching={"policy": "my_policy.py:POLICY"}))
    assert rove("explain", str(run), "--at", "2s").code == 0


def test_every_registry_is_listed() -> None:
    listed = re.findall(r"`((?:orchestrator|node_agent)\.\S+)\.([A-Z_]+)` \| `(rove\.\w+)`", GUIDE)
    assert len(listed) >= 10
    for module, name, group in listed:
        registry = getattr(__import__(module, fromlist=[name]), name)
        assert registry.group == group
