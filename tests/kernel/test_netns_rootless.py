"""The same network inside a user namespace, whose root is nobody on the host."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.backends.netns import rootless
from orchestrator.backends.netns.checks import checks
from orchestrator.backends.netns.layout import RadioEnd

PROGRAM = """
import asyncio, os, sys
from dataclasses import replace
from pathlib import Path
from orchestrator.backends.netns import network
from orchestrator.backends.netns.forkclient import ForkServer, Launch
from orchestrator.services.program import Argv
from orchestrator.backends.netns.layout import RadioEnd, numbered
from orchestrator.backends.netns.marks import Mark

async def main(directory, radio_end):
    mark = Mark("rootless", directory)
    ends = network.up(replace(numbered(["n01", "n02"]), radio_end=radio_end), mark, directory)
    async with await ForkServer.start(mark) as server:
        show = Argv(("ip", "-brief", "address", "show", "wlan0"))
        child = await server.spawn(Launch(show, directory / mark.namespace("n02"), stdout=1))
        assert await child.wait() == 0
    for descriptor in ends.values():
        os.close(descriptor)
    print(network.down(mark, directory))

asyncio.run(main(Path(sys.argv[1]), RadioEnd(sys.argv[2])))
"""


@pytest.mark.parametrize("radio_end", list(RadioEnd))
def test_up_run_and_down_in_a_user_namespace(tmp_path: Path, radio_end: RadioEnd) -> None:
    command = [sys.executable, "-m", rootless.__name__, str(tmp_path)]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, str(tmp_path), radio_end],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stderr == ""
    address, left = done.stdout.splitlines()
    assert address.split()[2] == "10.0.0.2/16"
    assert left == "[]"
    assert list(tmp_path.iterdir()) == []


def test_all_checks_pass_where_these_tests_run() -> None:
    assert [check for check in checks() if not check.ok or check.advice] == []
