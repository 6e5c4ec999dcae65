import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.enter import execute_on
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.errors import BadInput

PROGRAM = """
import sys
from pathlib import Path
from orchestrator.backends.netns.enter import execute_on
from orchestrator.backends.netns.marks import Mark
execute_on(Mark(sys.argv[1], Path(sys.argv[2])), sys.argv[3], sys.argv[4:])
"""


@pytest.fixture
def nodes(mark: Mark) -> Iterator[None]:
    ends = network.up(numbered(["n01", "n02"]), mark)
    yield
    for descriptor in ends.values():
        os.close(descriptor)


def command(mark: Mark, node: str, *argv: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, mark.run_id, str(mark.directory), node, *argv]


@pytest.mark.usefixtures("nodes")
def test_a_command_has_the_callers_streams_and_the_nodes_network(mark: Mark) -> None:
    shell = command(mark, "n02", "sh", "-c", "cat; ip -brief address show wlan0; exit 5")
    done = subprocess.run(shell, input="typed\n", capture_output=True, text=True, timeout=20)
    typed, address = done.stdout.splitlines()
    assert (done.returncode, typed, address.split()[2]) == (5, "typed", "10.0.0.2/16")


@pytest.mark.usefixtures("nodes")
def test_a_command_ends_with_its_network(mark: Mark) -> None:
    with subprocess.Popen(command(mark, "n01", "sleep", "60")) as process:
        deadline = time.monotonic() + 5
        while process.pid not in [found.pid for found in mark.processes()]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        network.down(mark, timeout=0.5)
        assert process.wait(5) < 0


@pytest.mark.usefixtures("nodes")
def test_a_command_ends_with_the_reader_of_its_output(mark: Mark) -> None:
    with subprocess.Popen(command(mark, "n01", "yes"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.wait(10) == -signal.SIGPIPE


@pytest.mark.usefixtures("nodes")
def test_unknown_nodes_and_programs_get_one_clear_error(mark: Mark) -> None:
    with pytest.raises(BadInput, match=r"no node 'n99' here: it has n01, n02$"):
        execute_on(mark, "n99", ["true"])
    done = subprocess.run(command(mark, "n01", "no-such"), capture_output=True, text=True, timeout=20)
    assert "BadInput: cannot run no-such: this machine does not have it" in done.stderr
    done = subprocess.run(command(mark, "n01", ""), capture_output=True, text=True, timeout=20)
    assert "BadInput: cannot run ''" in done.stderr


def test_without_a_network_there_are_no_nodes(mark: Mark) -> None:
    with pytest.raises(BadInput, match="it has none"):
        execute_on(mark, "n01", ["true"])
