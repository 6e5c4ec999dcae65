"""A switching policy of somebody else: registered, by its file, of a package; and all that can be wrong."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import POLICIES, SwitchingPolicy
from node_agent.apps.dataflow.switching.route import Choice, Hop
from node_agent.extensions.guard import MOST_IN_A_ROW
from tests.extension.harness import Rove, installed, refused, registered, run_of, written


def last_usable(situation: Situation, memory: Struct | None) -> Choice:
    """The last replica of the plan that can be reached."""
    costs = situation.costs()
    return Choice(Hop(list(costs)[-1], None) if costs else None)


LAST = SwitchingPolicy(last_usable, reason=lambda situation, choice: "it came last in the plan.")

HEAD = """\
from math import inf, nan
from node_agent.switching import Choice, Hop, spread


def decide(situation, memory):
"""
BODY = """\
    costs = situation.costs()
    return Choice(Hop(max(costs), None) if costs else None)
"""
WORKS_AT_FIRST = """\
    if situation.now_ns > 9_000_000_000 or situation.candidates[0].to.startswith("op1"):
        {}
    costs = situation.costs()
    return Choice(Hop(max(costs), None) if costs else None)
"""


def own(folder: Path, body: str = BODY, policy: str = "my_policy.py:decide", **changes: Any) -> Path:
    (folder / "my_policy.py").write_text(HEAD + body)
    return small(folder, policy, **changes)


def small(folder: Path, policy: str, **changes: Any) -> Path:
    return written(folder, switching={"policy": policy, "period": "0.5s"}, replicas=2, **changes)


def decisions(run: Path) -> list[dict[str, Any]]:
    return of_kind(run, "route_decision")


def of_kind(run: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted(run.glob("nodes/*/segments/*.jsonl"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [record for record in found if record["kind"] == kind]


def chosen(run: Path, downstream: str = "op1") -> set[str]:
    return {each["new"] for each in decisions(run) if each["downstream"] == downstream}


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(POLICIES, last=LAST):
        run = run_of(rove, small(tmp_path, "last"))
        assert chosen(run) == {"op1/1"}
        explained = rove("explain", str(run), "--at", "1s")
        assert explained.code == 0 and "It came last in the plan." in explained.out
        assert rove("replay", str(run), "--policy", "last").code == 0


def test_named_by_its_file(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, own(tmp_path))
    assert chosen(run) == {"op1/1"}
    assert {each["policy"] for each in decisions(run)} == {"my_policy.py:decide"}
    assert (run / "switching" / "my_policy.py").exists()
    (tmp_path / "my_policy.py").unlink()  # the file goes with the run
    assert chosen(run_of(rove, run / "spec.yaml")) == {"op1/1"}
    explained = rove("explain", str(run), "--at", "1s")
    assert "The policy my_policy.py:decide chose op1/1 from the 2 replicas" in explained.out
    assert str(tmp_path) not in explained.out


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_policies.py").write_text(HEAD + BODY)
    with installed(tmp_path, POLICIES, {"largest": "somebodys_policies:decide"}):
        assert chosen(run_of(rove, small(tmp_path, "largest"))) == {"op1/1"}


def test_swept_beside_ours(rove: Rove, tmp_path: Path) -> None:
    file = own(tmp_path, policy="static", sweep={"switching.policy": ["static", "my_policy.py:decide"]})
    finished = rove("run", str(file), "--no-analyze", "--json")
    assert finished.code == 0, finished.err
    runs = {nodes.parent for nodes in Path(os.environ["ROVE_RUNS_DIR"]).glob("small/*/**/nodes")}
    used = {each["policy"] for run in runs for each in decisions(run)}
    assert used == {"static", "my_policy.py:decide"}


def test_replayed_on_a_run_of_another(rove: Rove, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(rove, own(tmp_path, policy="static"))
    monkeypatch.chdir(tmp_path)
    again = json.loads(rove("replay", str(run), "--policy", "my_policy.py:decide", "--json").out)
    assert again["policy"] == "my_policy.py:decide" and not again["failed"]
    (one,) = [each for each in again["compared"] if each["downstream"] == "op1"]
    assert list(one["replayed"]["seconds"]) == ["op1/1"]
    (tmp_path / "my_policy.py").write_text(HEAD + WORKS_AT_FIRST.format("raise KeyError('no')"))
    failing = json.loads(rove("replay", str(run), "--policy", "my_policy.py:decide", "--json").out)
    (failed,) = failing["failed"]
    assert failed["place"] == "my_policy.py, line 7" and failed["error"] == "KeyError: 'no'"
    missing = rove("replay", str(run), "--policy", "nowhere.py:decide")
    assert missing.code == 2 and "nowhere.py: no such file" in missing.err


def test_it_may_ask_for_queues(rove: Rove, tmp_path: Path) -> None:
    declared = "\n\nimport node_agent.switching as rove\nPOLICY = rove.SwitchingPolicy(decide, queues=True)\n"
    run = run_of(rove, own(tmp_path, BODY + declared, "my_policy.py:POLICY"))
    assert any(c.get("queue") is not None for each in decisions(run) for c in each["candidates"])


def test_no_such_file(rove: Rove, tmp_path: Path) -> None:
    said = refused(rove, own(tmp_path, policy="my_polcy.py:decide"))
    assert 'switching.policy: "my_polcy.py": no such file' in said
    assert 'did you mean "my_policy.py"?' in said


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return ][", "my_policy.py, line 6: unmatched ']'"),
        ("    pass\n\nimport no_such_module", "my_policy.py, line 8: ModuleNotFoundError"),
        ("    pass\n\nraise SystemExit", "my_policy.py, line 8: SystemExit"),
        ("    pass\n\ndel decide", "my_policy.py defines no decide"),
        ("    pass\n\ndecide = 3", "my_policy.py:decide is int, neither a function nor a SwitchingPolicy"),
        ("    return 1 / 0", "my_policy.py, line 6: ZeroDivisionError: division by zero"),
        ("    raise StopIteration", "my_policy.py, line 6: StopIteration"),
        ("    exit(1)", "my_policy.py, line 6: SystemExit: 1"),
        ("    while True: pass", "my_policy.py, line 6: it takes more than 50 ms"),
        ("    import time; time.sleep(60)", "my_policy.py, line 6: it takes more than 50 ms"),
        ("    return 'operator/0'", "my_policy.py, line 5: it returns str, not a Choice"),
        ("    return Choice('operator/0')", "line 5: the hop of its Choice is str, not a Hop"),
        ("    return Choice(Hop('mars/7', None))", "line 5: it chooses 'mars/7', which is no candidate"),
        (
            "    to = situation.candidates[0].to\n    return Choice(Hop(to, nan))",
            "line 5: the cost of its Hop is nan, not a number of at least 0",
        ),
        (
            "    to = situation.candidates[0].to\n    return Choice(Hop(to, 1.0, ((to, -1.0),)))",
            "line 5: a share of its Hop is -1.0, not a number of at least 0",
        ),
        (
            "    to = situation.candidates[0].to\n    return Choice(Hop(to, 1.0, ((to, 0.5),)))",
            "line 5: the shares of its Hop do not add up to 1",
        ),
        ("    return Choice(None, inf)", "line 5: needed is inf, not a number of at least 0"),
        ("    return Choice(None, None, {})", "line 5: its memory is dict, not a msgspec.Struct"),
        (
            "    pass\n\nROVE_API = 99",
            "my_policy.py was written for version 99 of Rove's extension points, and this is version 1",
        ),
    ],
)
def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path, body: str, message: str) -> None:
    said = refused(rove, own(tmp_path, body))
    assert message in said
    assert said.count("switching.policy: ") == 1 and "1 problem" in said
    checked = rove("validate", str(tmp_path / "small.yaml"))
    assert checked.code == 2 and message in checked.err


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        ("raise ValueError('not now')", "ValueError: not now"),
        ("while True: pass", "it takes more than 50 ms"),
        ("return Choice(Hop('mars/7', None))", "it chooses 'mars/7', which is no candidate"),
        ("exit(3)", "SystemExit: 3"),
    ],
)
def test_no_agent_dies_of_it(rove: Rove, tmp_path: Path, fails: str, error: str) -> None:
    """It passes the trial, and fails in the run: shortest_path takes over, and the verdict says so."""
    file = own(tmp_path, WORKS_AT_FIRST.format(fails), duration="8s")
    finished = rove("run", str(file), "--no-analyze", "--json")
    assert finished.code == 3, finished.err + finished.out
    said = json.loads(finished.out)
    (reason,) = said["reasons"]
    assert "switching policy my_policy.py:decide failed" in reason and error in reason
    assert "and was left out" in reason
    run = Path(said["directory"])
    used = Counter(each["policy"] for each in decisions(run) if each["downstream"] == "op1")
    assert set(used) == {"shortest_path"}
    failed = of_kind(run, "extension_failed")
    counts = [each["count"] for each in failed]  # of one node, sampled every second
    assert len(counts) > 1 and counts[0] < MOST_IN_A_ROW and counts == sorted(set(counts))
    assert (
        counts[-1] == MOST_IN_A_ROW and [each["left_out"] for each in failed].index(True) == len(counts) - 1
    )
    assert {each["place"] for each in failed} <= {"my_policy.py, line 7", "my_policy.py, line 5"}
    assert len(of_kind(run, "agent_stop")) == 4
    delivered = of_kind(run, "tuple_delivered")
    assert delivered and max(each["tau"] for each in delivered) > 60
