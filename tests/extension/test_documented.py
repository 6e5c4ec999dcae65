"""What docs/extending.md shows works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extension.harness import ROOT, Rove, records, run_of, written

GUIDE = (ROOT / "docs" / "extending.md").read_text()
EXAMPLES = re.findall(r"```python\n# (\S+\.py)\n(.*?)```\n```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert [name for name, _, _ in EXAMPLES] == ["my_mobility.py", "my_losses.py"]


@pytest.mark.parametrize(("name", "code", "section"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_an_example_runs(rove: Rove, tmp_path: Path, name: str, code: str, section: str) -> None:
    (tmp_path / name).write_text(code)
    topology: dict[str, Any] = yaml.safe_load(section)
    run = run_of(rove, written(tmp_path, topology))
    places = {(each["x"], each["y"]) for each in records(run / "radio" / "positions.jsonl")}
    assert (len(places) > 4) == ("mobility" in topology)


def test_every_registry_is_listed() -> None:
    for module, name, group in re.findall(r"`(orchestrator\.\S+)\.([A-Z_]+)` \| `(rove\.\w+)`", GUIDE):
        registry = getattr(__import__(module, fromlist=[name]), name)
        assert registry.group == group
