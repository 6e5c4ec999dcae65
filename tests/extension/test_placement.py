"""A placement policy of somebody else: registered, by its file, of a package; and all that can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.apps.dataflow.planning.arrangement import Placed, Slot
from orchestrator.apps.dataflow.planning.placement_policy import Drawn, PlacementPolicy, Site, one_by_one
from orchestrator.apps.dataflow.spec.placement import PLACEMENT_POLICIES
from tests.extension.harness import Rove, installed, refused, registered, run_of, written


class BackwardsSection(Drawn):
    policy: str
    skip: int = 0


def backwards(site: Site) -> Any:
    assert isinstance(site.settings, BackwardsSection)
    skip = site.settings.skip

    def place(slot: Slot, placed: Placed) -> str | None:
        free = [node for node in sorted(site.order, reverse=True)[skip:] if node not in placed.values()]
        return free[0] if free else None

    return place


BACKWARDS = PlacementPolicy(one_by_one(backwards), "by name, from the last", BackwardsSection)

HEAD = "def place(slot, placed, site):\n"
BODY = """\
    free = [node for node in sorted(site.order) if node not in placed.values()]
    return free[0] if free else None
"""


def own(folder: Path, body: str = BODY, policy: str = "my_placement.py:place", **changes: Any) -> Path:
    (folder / "my_placement.py").write_text(HEAD + body)
    return written(folder, placement={"policy": policy, **changes})


def test_what_is_placed_cannot_be_changed(rove: Rove, tmp_path: Path) -> None:
    said = refused(rove, own(tmp_path, f"    placed[slot] = 'n01'\n{BODY}"))
    assert "my_placement.py, line 2: TypeError" in said


def hosts(run: Path) -> dict[str, str]:
    starts = [
        json.loads(line)
        for file in run.glob("nodes/*/segments/*.jsonl")
        for line in file.read_text().splitlines()
        if '"agent_start"' in line
    ]
    return {replica: start["node"] for start in starts for replica in start["replicas"]}


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(PLACEMENT_POLICIES, backwards=BACKWARDS):
        said = refused(rove, written(tmp_path, placement={"policy": "backwards", "skpi": 1}))
        assert "placement.skpi: unknown key" in said
        run = run_of(rove, written(tmp_path, placement={"policy": "backwards", "skip": 1}))
        assert hosts(run) == {"camera/0": "n03", "screen/0": "n02", "op1/0": "n01"}


def test_named_by_its_file(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, own(tmp_path, seed=3))
    assert hosts(run) == {"camera/0": "n01", "screen/0": "n02", "op1/0": "n03"}
    (tmp_path / "my_placement.py").unlink()  # the file goes with the run
    assert hosts(run_of(rove, run / "spec.yaml")) == hosts(run)


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_placements.py").write_text(HEAD + BODY)
    with installed(tmp_path, PLACEMENT_POLICIES, {"by_name": "somebodys_placements:place"}):
        file = written(tmp_path, placement={"policy": "by_name"})
        planned = rove("plan", str(file), "--json")
        assert planned.code == 0 and '"n03"' in planned.out
        assert hosts(run_of(rove, file))["op1/0"] == "n03"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return ][", "my_placement.py, line 2: unmatched ']'"),
        ("    pass\n\ndel place", "my_placement.py defines no place"),
        ("    pass\n\nplace = 3", "my_placement.py:place is int, neither a function nor a PlacementPolicy"),
        ("    return 1 / 0", "my_placement.py, line 2: ZeroDivisionError: division by zero"),
        ("    return 7", "my_placement.py, line 1: it places camera/0 on '7', which is no node"),
        ("    return 'n99'", "my_placement.py, line 1: it places camera/0 on 'n99', which is no node"),
        ("    while True: pass", "my_placement.py, line 2: it takes more than 1000 ms"),
    ],
)
def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path, body: str, message: str) -> None:
    said = refused(rove, own(tmp_path, body))
    assert message in said
    assert said.count("placement.policy: ") == 1 and "1 problem" in said


def test_replicas_of_an_operator_need_nodes_of_their_own(rove: Rove, tmp_path: Path) -> None:
    own(tmp_path, "    return 'n01'")
    said = refused(rove, written(tmp_path, placement={"policy": "my_placement.py:place"}, replicas=2))
    assert "it places op1/1 on n01, which has a replica of op1 already" in said


def test_no_such_policy(rove: Rove, tmp_path: Path) -> None:
    assert 'placement.policy: "my_placment.py": no such file' in refused(
        rove, own(tmp_path, policy="my_placment.py:place")
    )
    said = refused(rove, own(tmp_path, policy="spred"))
    assert 'placement.policy: "spred" is not known here' in said and 'did you mean "spread"?' in said
