"""A program on a lifeline lives no longer than who holds the other end wants it, or lives."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.host.file_limit import LARGEST_FILE
from tests.unit.supervising import PATIENCE_S, processes_of

TETHER = [sys.executable, "-m", "node_agent.supervisor.lifeline", "--"]
FAMILY = "import os, sys, time; os.fork(); print(sys.argv[1], file=sys.stderr, flush=True); time.sleep(600)"


def run_with_lifeline(*argv: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*TETHER, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(("program", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 128 + 9)])
def test_its_status_is_the_programs(program: str, status: int) -> None:
    with run_with_lifeline("sh", "-c", program) as lifeline:
        assert lifeline.wait(PATIENCE_S) == status
        assert lifeline.stdout is not None and lifeline.stdout.read() == b'{"ready": true}\n'


def test_what_the_program_prints_goes_to_stderr() -> None:
    with run_with_lifeline("sh", "-c", "echo out; echo err >&2") as lifeline:
        assert lifeline.stderr is not None and lifeline.stderr.read() == b"out\nerr\n"


def test_a_program_that_floods_its_log_lives_on_and_the_log_ends(tmp_path: Path) -> None:
    """Its writes fail; nothing ends it."""
    flood = f"head -c {2 * LARGEST_FILE} /dev/zero >&2; echo $? >&3; exit 5"
    with (tmp_path / "log").open("ab") as log, (tmp_path / "said").open("ab") as said:
        command = ["sh", "-c", f'exec 3>>"{said.name}"; {flood}']
        lifeline = subprocess.Popen(
            [*TETHER, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
    with lifeline:
        assert lifeline.wait(PATIENCE_S) == 5
    assert (tmp_path / "log").stat().st_size == LARGEST_FILE
    assert (tmp_path / "said").read_text() == "1\n"


def test_a_program_that_is_not_there() -> None:
    with run_with_lifeline("/no/such/program") as lifeline:
        assert lifeline.wait(PATIENCE_S) == 127
        assert lifeline.stdout is not None and lifeline.stdout.read() == b""
        assert lifeline.stderr is not None and b"/no/such/program: No such file" in lifeline.stderr.read()


@pytest.mark.parametrize("let_go", ["closed", "signalled"])
def test_let_go_it_ends_the_program_and_its_children(tmp_path: Path, let_go: str) -> None:
    with run_with_lifeline(sys.executable, "-c", FAMILY, str(tmp_path)) as lifeline:
        assert lifeline.stdin is not None and lifeline.stderr is not None
        for _ in ("parent", "child"):
            lifeline.stderr.readline()
        assert len(processes_of(tmp_path)) == 3
        if let_go == "closed":
            lifeline.stdin.close()
        else:
            lifeline.send_signal(signal.SIGTERM)
        assert lifeline.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert processes_of(tmp_path) == []


def test_it_says_how_it_is_called() -> None:
    done = subprocess.run([*TETHER[:-1], "true"], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and b"usage: " in done.stderr
