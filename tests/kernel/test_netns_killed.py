"""However the owner ends, teardown by mark leaves nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from tests.kernel import owner

# The owner's programs are found by this number, marked or not: nobody else on the machine sleeps for it.
SECONDS = f"60.{os.getpid()}"


def start_owner(mark: Mark, nodes: int, rounds: int) -> subprocess.Popen[str]:
    """Returns when it is about to make something."""
    arguments = [mark.run_id, str(mark.directory), str(nodes), str(rounds), SECONDS]
    process = subprocess.Popen(
        [sys.executable, "-m", owner.__name__, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "born\n"
    return process


def sleepers() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes() == f"sleep\0{SECONDS}\0".encode():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def wait_until_no_sleepers() -> None:
    deadline = time.monotonic() + 5
    while sleepers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sleepers() == []


@pytest.mark.slow
def test_killed_at_random_moments_and_taken_down_nothing_is_left(mark: Mark) -> None:
    moments = random.Random(1)
    was_there = 0
    for _ in range(10):
        with start_owner(mark, nodes=6, rounds=100) as process:
            time.sleep(moments.uniform(0.0, 1.0))
            assert process.poll() is None
            process.kill()
        was_there += bool(network.leftovers(mark))
        assert network.down(mark) == []
        wait_until_no_sleepers()
        assert network.leftovers(mark) == []
    assert was_there >= 3, "the owner was killed before it had made anything: this proved nothing"


def test_when_the_owner_is_killed_the_programs_end_by_themselves(mark: Mark) -> None:
    with start_owner(mark, nodes=3, rounds=1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()
    wait_until_no_sleepers()


def test_the_control_group_ends_even_what_forgot_its_mark(mark: Mark) -> None:
    """The server is killed and cannot end its descendants; an unmarked orphan is left to the group."""
    with start_owner(mark, nodes=1, rounds=1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        while len(sleepers()) < 2:
            time.sleep(0.01)
        os.kill(server_of(mark), signal.SIGKILL)
        process.kill()
    unmarked = set(sleepers()) - {found.pid for found in mark.processes()}
    assert unmarked, "the orphan ended by itself: this proved nothing"
    assert network.down(mark) == []
    wait_until_no_sleepers()


def server_of(mark: Mark) -> int:
    """The fork server: the marked process that the others descend from."""
    return min(found.pid for found in mark.processes())
