"""`rove down` of a run needs no code that the run's files name: it is neither run nor needed."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.backends.core.session_leftovers import JOURNAL_KIND
from orchestrator.backends.remote.ledger import KIND
from orchestrator.errors import EXIT_FAILED
from orchestrator.lifecycle.teardown import tear_down
from orchestrator.runs import run_directory
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import rove
from tests.unit.specs import topology

ACCESS = {"host": "127.0.0.1", "port": 1, "user": "nobody"}
"""Where nobody listens."""


def left_run(root: Path, evil: str, topology: Any, backend: str = "ssh", **changes: Any) -> RunDirectory:
    """A run as a killed orchestrator leaves it, with a supervisor on n1; and with ``evil`` in its files."""
    run = run_directory.create(root, "lab", "r1")
    journal = Journal.create(run.journal)
    journal.intend(KIND, node="n1", place="/home/u/.rove/runs/r1/n1", supervisor=["k"], lease=60.0)
    if backend == "core":
        journal.intend(JOURNAL_KIND, host="nobody@127.0.0.1", token="0123456789abcdef")
    journal.abandon()
    document: dict[str, Any] = {
        "name": "lab",
        "backend": backend,
        "query": "synthetic_chain",
        "duration": "5s",
    }
    document |= {"topology": topology, "switching": {"policy": "evil.py:decide"}, **changes}
    run.spec.write_text(json.dumps(document))
    (run.path / "evil.py").write_text(evil)
    return run


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "executed"


def real(**changes: Any) -> dict[str, Any]:
    hosts = {"n1": {**ACCESS, "interface": "wlan0"}}
    return topology(nodes=["n1"], hosts=hosts) | changes


SECTIONS: dict[str, dict[str, Any]] = {
    "switching alone": {},
    "mobility": {"mobility": {"model": "evil.py:Model"}},
    "path loss": {"radio": {"model": "80211b", "pathloss": {"model": "evil.py:Model"}}},
}


@pytest.mark.parametrize("section", SECTIONS)
def test_code_of_the_run_is_not_run_and_its_machines_are_still_asked(
    tmp_path: Path, mark: Path, section: str
) -> None:
    run = left_run(tmp_path, f"open({str(mark)!r}, 'w').close()\n", real(**SECTIONS[section]))
    (left,) = tear_down(run).left
    assert left.startswith("n1: ") and "code" not in left, "it was asked, or has no enrolled key here"
    assert not mark.exists()


def test_a_broken_file_of_the_user_does_not_hinder_it(tmp_path: Path) -> None:
    run = left_run(tmp_path, "this is no Python", real())
    done = rove(tmp_path, "down", "r1")
    assert done.returncode == EXIT_FAILED
    assert "n1: " in done.stdout and "evil.py" not in done.stdout + done.stderr
    assert run.verdict.exists()


def test_a_topology_in_a_file_of_its_own(tmp_path: Path, mark: Path) -> None:
    run = left_run(tmp_path, f"open({str(mark)!r}, 'w').close()\n", "field.yaml")
    (run.path / "field.yaml").write_text(json.dumps(real(**SECTIONS["mobility"])))
    (left,) = tear_down(run).left
    assert left.startswith("n1: ") and "cannot be asked" not in left
    assert not mark.exists()


@pytest.mark.parametrize("stated", [None, 3, "../evil.py", topology(nodes=["n1"]), topology(nodes=0)])
def test_nodes_that_cannot_be_asked_are_named(tmp_path: Path, mark: Path, stated: Any) -> None:
    run = left_run(tmp_path, f"open({str(mark)!r}, 'w').close()\n", stated)
    (left,) = tear_down(run).left
    assert left.startswith("n1: cannot be asked: ")
    assert not mark.exists()


@pytest.mark.parametrize("core", [ACCESS, None])
def test_a_session_on_core_is_looked_for_without_the_code_of_the_run(
    tmp_path: Path, mark: Path, core: dict[str, Any] | None
) -> None:
    field = topology(nodes=["n1"], mobility={"model": "evil.py:Model"}, core=core)
    run = left_run(tmp_path, f"open({str(mark)!r}, 'w').close()\n", field, "core")
    left = tear_down(run).left
    (session,) = [what for what in left if what.startswith("CORE's host cannot be asked: ")]
    assert ("does not say where CORE's host is" in session) == (core is None)
    assert not mark.exists()
