"""`rove run` of a file with an interest that cannot work: one problem with its line, nothing created."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.spec.dump import to_yaml
from tests.unit.orchestrator.apps.mcep.town import document
from tests.unit.rove_process import rove

pytestmark = [pytest.mark.unit, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("interest", "words"),
    [
        ({"keep": "6s"}, "a switch needs 10 s of them"),
        ({"brokers": {"b1": {"x": [0, 300], "y": [0, 200]}}}, "no broker serves the area from (300, 0)"),
        ({"brokers": {"b1": {"polygon": [[0, 0], [400, 0], [400, 200]]}}}, "no broker serves the area at"),
    ],
)
def test_one_problem_is_told_and_nothing_is_created(
    tmp_path: Path, interest: dict[str, Any], words: str
) -> None:
    file, runs = tmp_path / "bad.yaml", tmp_path / "runs"
    file.write_text(to_yaml(document(interest)))
    ended = rove(runs, "run", str(file))
    said = ended.stdout + ended.stderr
    assert ended.returncode == 2 and "1 problem" in said and words in said and "line " in said
    assert not runs.exists() and list(tmp_path.iterdir()) == [file]
