"""The network of somebody else's run is read without running any code that its file names."""

import json
from pathlib import Path

import pytest

from orchestrator.planning.load import load_network
from orchestrator.spec.problems import BadSpec
from tests.unit.specs import topology


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    "section",
    [
        {"mobility": {"model": "code.py:Model"}},
        {"radio": {"model": "80211b", "pathloss": {"model": "code.py:Model"}}},
    ],
    ids=["mobility", "pathloss"],
)
def test_code_that_a_topology_names_is_not_run(
    tmp_path: Path, section: dict[str, object], inline: bool
) -> None:
    (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "field.yaml").write_text(json.dumps(topology(**section)))
    document = {"topology": topology(**section) if inline else "field.yaml", "backend": "sim"}
    (tmp_path / "spec.yaml").write_text(json.dumps(document))
    with pytest.raises(BadSpec, match="code, which is not run here"):
        load_network(tmp_path / "spec.yaml")
    assert not (tmp_path / "ran").exists()


def test_a_topology_without_code_is_read(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(json.dumps({"topology": topology(), "backend": "sim"}))
    assert load_network(tmp_path / "spec.yaml").topology.name == "field"
