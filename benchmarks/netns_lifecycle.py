"""How long a network of 50 nodes takes to come up and go away, and whether it leaves or disturbs anything.

Median of several rounds; then `rove up`, killed again and again (see ``netns.kills``). Decoys whose names
resemble the run's stand beside it all the while.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import harness
from benchmarks.netns import kills
from orchestrator.backends.netns import names, network, syscalls
from orchestrator.backends.netns.checks import checks
from orchestrator.backends.netns.executor import Descriptors
from orchestrator.backends.netns.forkclient import Argv, ForkServer, Launch
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle import processes

NODES = 50
ROUNDS = 5
KILLS = 20
SEED = 1
LAYOUT = numbered([f"n{number:02d}" for number in range(1, NODES + 1)])


def measure() -> harness.Figures:
    lacking = [check.name for check in checks() if not check.ok and check.required]
    if os.geteuid() != 0 or lacking:
        return {"skipped": f"needs root and {', '.join(lacking) or 'network namespaces'}"}
    with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as directory, ExitStack() as stack:
        mark = Mark("benchmark", Path(directory))
        to_be_killed = Mark(kills.RUN_ID, kills.directory_in(Path(directory)))
        lookalikes = [f"rove-foo{os.getpid()}", *_lookalikes(mark), *_lookalikes(to_be_killed)]
        strangers = [stack.enter_context(_foreign_process(like)) for like in (mark, to_be_killed)]
        paths = [stack.enter_context(_foreign_namespace(name)) for name in lookalikes]
        before = _state(strangers, paths)
        rounds = [_round(mark) for _ in range(ROUNDS)]
        killed = kills.kill_repeatedly(Path(directory), KILLS, SEED)
        after = _state(strangers, paths)
    up, spawn, down, left = zip(*rounds, strict=True)
    return {
        "nodes": NODES,
        "rounds": ROUNDS,
        "up_s": statistics.median(up),
        "spawn_s": statistics.median(spawn),
        "down_s": statistics.median(down),
        "leftovers": int(sum(left)),
        "kills": killed.kills,
        "kills_that_left_something": killed.found_something,
        "leftovers_after_kills": killed.leftovers,
        "failed_downs_after_kills": killed.failures,
        "foreign_touched": sum(after[key] != value for key, value in before.items()),
    }


def _round(mark: Mark) -> tuple[float, float, float, int]:
    started = time.perf_counter()
    ends = network.up(LAYOUT, mark)
    up = time.perf_counter() - started
    spawn, down, left = asyncio.run(_run_and_end(mark, ends))
    return up, spawn, down, left


async def _run_and_end(mark: Mark, ends: Descriptors) -> tuple[float, float, int]:
    """One program on each node; then everything down with the programs still running."""
    server = await ForkServer.start(mark)
    try:
        launches = [
            Launch(Argv(("sleep", "60")), names.HOST_NAMES / mark.namespace(node.name))
            for node in LAYOUT.nodes
        ]
        started = time.perf_counter()
        await asyncio.gather(*(server.spawn(launch) for launch in launches))
        spawn = time.perf_counter() - started
        started = time.perf_counter()
        for descriptor in ends.values():
            os.close(descriptor)
        left = network.down(mark)
        down = time.perf_counter() - started
    finally:
        await server.close()
    return spawn, down, len(left)


def _lookalikes(mark: Mark) -> list[str]:
    return [mark.group, f"{mark.group}x-n01", f"{mark.group}-n01.old", mark.namespace("n99")]


def _state(strangers: list[subprocess.Popen[bytes]], paths: list[Path]) -> dict[str, object]:
    return {
        "links of the host": socket.if_nameindex(),
        "routes of the host": Path("/proc/net/route").read_text(),
        **{f"process {process.pid}": process.poll() for process in strangers},
        **{str(path): path.stat().st_ino if path.exists() else None for path in paths},
    }


@contextmanager
def _foreign_namespace(name: str) -> Iterator[Path]:
    path = names.HOST_NAMES / name
    names.prepare(names.HOST_NAMES)

    def make() -> None:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        names.name_own_namespace(path)

    syscalls.in_own_thread(make)
    try:
        yield path
    finally:
        names.release(path)


@contextmanager
def _foreign_process(mark: Mark) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, processes.MARK: f"{mark.run_id}-2"})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    harness.main("Life cycle of a network of namespaces", measure)
