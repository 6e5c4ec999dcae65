"""Numbers of processes are used again: a signal that is meant for one must never reach a stranger."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.host.marked_processes import Identity, identify, send
from node_agent.supervisor import ending, leftovers
from node_agent.supervisor.place import occupant, occupied
from orchestrator.runs import processes

HELD = "supervisor.pid"


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def earlier(process: "subprocess.Popen[bytes]") -> Identity:
    """The one that had the stranger's number before."""
    now = identify(process.pid)
    assert now is not None
    return Identity(now.pid, now.started - 1)


def test_leftovers_that_ended_by_themselves_are_not_mistaken(
    stranger: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looks = iter([[earlier(stranger)], [earlier(stranger)]])
    monkeypatch.setattr(leftovers, "belonging", lambda run, place: next(looks, []))
    leftovers.end_leftovers("run", tmp_path, 0.0)
    assert stranger.poll() is None


def test_a_run_ends_only_processes_that_it_looked_at(stranger: "subprocess.Popen[bytes]") -> None:
    assert processes.end([earlier(stranger)], 0.1) == []
    assert not processes.request_stop(earlier(stranger))
    assert stranger.poll() is None


def test_what_a_supervisor_before_wrote_down_is_not_this_supervisors(
    stranger: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A new supervisor has the place, and the file still has the number of the one before."""
    (tmp_path / HELD).write_text(str(stranger.pid))
    monkeypatch.setattr(ending, "LONGEST_END_S", 0.1)
    monkeypatch.setattr(ending, "_EXIT_S", 0.1)
    monkeypatch.chdir(tmp_path)  # where it goes to speak to a supervisor, and stays
    with (tmp_path / HELD).open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert occupant(tmp_path) == 0
        ending._end_supervisor(tmp_path, "test")
    assert stranger.poll() is None


def test_a_supervisor_that_has_said_who_it_is_can_be_ended(tmp_path: Path) -> None:
    with occupied(tmp_path):
        assert occupant(tmp_path) == os.getpid()
    assert occupant(tmp_path) is None


def test_without_pidfds_the_one_that_is_meant_is_still_looked_at(
    stranger: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert not send(earlier(stranger), signal.SIGKILL)
    now = identify(stranger.pid)
    assert now is not None and send(now, signal.SIGKILL)
    assert stranger.wait(10) == -signal.SIGKILL
