"""What only looks like ours stays: names, namespaces, links, processes and groups of strangers."""

import os
import subprocess
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.netns.decoys import foreign_namespace, lookalikes, sleeper
from orchestrator.backends.netns import control_group, names, network
from orchestrator.backends.netns.executor import execute
from orchestrator.backends.netns.layout import numbered, steps
from orchestrator.backends.netns.marks import CONTROL, Mark
from orchestrator.runs import processes


def is_namespace(path: Path) -> bool:
    descriptor = names.open_namespace(path)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def test_lookalike_names_stay(mark: Mark) -> None:
    with ExitStack() as stack:
        decoys = [stack.enter_context(foreign_namespace(name)) for name in lookalikes(mark)]
        identities = [path.stat().st_ino for path in decoys]
        for descriptor in network.up(numbered(["n01", "n02"]), mark).values():
            os.close(descriptor)
        assert network.down(mark) == []
        assert [path.stat().st_ino for path in decoys] == identities
        assert all(is_namespace(path) for path in decoys)


def test_another_runs_network_stays_with_its_links(mark: Mark, tmp_path: Path) -> None:
    """Same run id in another place, so same node names, same link names, same addresses."""
    other = replace(mark, directory=tmp_path / "elsewhere")
    layout = numbered(["n01", "n02"])
    theirs = execute(steps(layout, other))
    try:
        for descriptor in network.up(layout, mark).values():
            os.close(descriptor)
        assert network.down(mark) == []
        with names.names_of(other, names.HOST_NAMES) as found:
            assert [named.node for named in found] == ["n01", "n02", CONTROL]
    finally:
        for descriptor in theirs.values():
            os.close(descriptor)
        assert network.down(other) == []


def test_processes_of_other_runs_stay(mark: Mark, tmp_path: Path) -> None:
    path = {"PATH": os.environ["PATH"]}
    strangers = [
        path,
        {**path, processes.MARK: f"{mark.run_id}x"},
        {**path, processes.MARK: mark.run_id[:-1]},
        {**path, f"X{processes.MARK}": mark.run_id},
        {**path, **processes.mark(mark.run_id, tmp_path / "elsewhere")},
    ]
    with ExitStack() as stack:
        decoys = [stack.enter_context(sleeper(environment)) for environment in strangers]
        ours = stack.enter_context(sleeper({**path, **mark.environment}))
        assert network.down(mark) == []
        assert ours.wait(5) < 0
        assert [decoy.poll() for decoy in decoys] == [None] * len(decoys)


def test_a_strangers_control_group_stays(mark: Mark) -> None:
    with sleeper(dict(os.environ)) as ours, sleeper(dict(os.environ)) as theirs:
        group = control_group.create_around(mark, ours.pid)
        assert group is not None
        decoy = group.path.with_name(f"{mark.group}x")
        decoy.mkdir()
        try:
            (decoy / "cgroup.procs").write_text(str(theirs.pid))
            assert network.down(mark) == []
            assert ours.wait(5) < 0
            assert theirs.poll() is None
            assert decoy.is_dir()
        finally:
            theirs.kill()
            theirs.wait()
            control_group.ControlGroup(decoy).remove(timeout=5)


def test_a_visitor_in_a_node_is_reported_and_not_killed(mark: Mark) -> None:
    """Somebody's shell that was sent into the node with `ip netns exec`, not with `rove exec`."""
    for descriptor in network.up(numbered(["n01"]), mark).values():
        os.close(descriptor)
    path = names.HOST_NAMES / mark.namespace("n01")
    visitor = subprocess.Popen(["nsenter", f"--net={path}", "sleep", "60"])
    try:
        deadline = time.monotonic() + 5
        while network.Leftover("visitor", str(visitor.pid)) not in network.leftovers(mark):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        left = network.down(mark, timeout=0.5)
        assert visitor.poll() is None
        assert {entry.kind for entry in left} == {"namespace", "visitor"}
        assert network.Leftover("visitor", str(visitor.pid)) in left
    finally:
        visitor.kill()
        visitor.wait()


@pytest.mark.parametrize("node", ["n01", CONTROL])
def test_a_name_that_a_crash_left_without_namespace_is_removed(mark: Mark, node: str) -> None:
    names.prepare(names.HOST_NAMES)
    path = names.HOST_NAMES / mark.namespace(node)
    path.touch()
    assert [entry.kind for entry in network.leftovers(mark)] == ["namespace"]
    assert network.down(mark) == []
    assert not path.exists()
