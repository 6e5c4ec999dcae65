"""Measures how long a network of 50 nodes takes to come up and go down, and whether it leaves or disturbs
anything.

"Up" is everything that `rove up` makes except the radio: TAP devices, addresses, permanent neighbours, all
true routes. Median of several rounds; then `rove up` of as many nodes, killed again and again (see
``netns.kills``). Decoys whose names resemble the runs' exist all the while.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import yaml

from benchmarks.netns import decoys, kills
from benchmarks.shared import harness
from orchestrator.backends.netns import names, network
from orchestrator.backends.netns.checks import checks
from orchestrator.backends.netns.emulation import layout_of
from orchestrator.backends.netns.executor import Descriptors
from orchestrator.backends.netns.forkclient import ForkServer, Launch
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.routes import Routes
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.survey import survey
from orchestrator.runs import processes
from orchestrator.services.program import Argv
from orchestrator.spec.topology import Topology

NODES = 50
ROUNDS = 5
KILLS = 20
SEED = 1
FIELD = Topology.model_validate(yaml.safe_load(kills.topology(NODES)))
LAYOUT = layout_of(FIELD, queue_length=100)
HOSTS = {node.name: node.radio.ip for node in LAYOUT.nodes}


def measure() -> harness.Figures:
    lacking = [check.name for check in checks() if not check.ok and check.required]
    if os.geteuid() != 0 or lacking:
        return {"skipped": f"needs root and {', '.join(lacking) or 'network namespaces'}"}
    with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as directory, ExitStack() as stack:
        mark = Mark("benchmark", Path(directory))
        to_be_killed = Mark(kills.RUN_ID, kills.directory_in(Path(directory)))
        strangers = [
            stack.enter_context(decoys.sleeper({**os.environ, processes.MARK: f"{like.run_id}-2"}))
            for like in (mark, to_be_killed)
        ]
        paths = [
            stack.enter_context(decoys.foreign_namespace(name))
            for name in decoys.lookalikes(mark, to_be_killed)
        ]
        before = _state(strangers, paths)
        rounds = [_round(mark) for _ in range(ROUNDS)]
        killed = kills.kill_repeatedly(Path(directory), NODES, KILLS, SEED)
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
    radio, mac = air_settings(FIELD)
    links = survey(radio.radio(), mac, FIELD.static_positions()).links
    started = time.perf_counter()
    ends = network.up(LAYOUT, mark)
    routes = Routes({node: names.HOST_NAMES / mark.namespace(node) for node in HOSTS}, HOSTS)
    routes.install(links)
    up = time.perf_counter() - started
    routes.close()
    spawn, down, left = asyncio.run(_run_and_end(mark, ends))
    return up, spawn, down, left


async def _run_and_end(mark: Mark, ends: Descriptors) -> tuple[float, float, int]:
    """Starts one program on each node, then takes everything down while they run."""
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


def _state(strangers: list[subprocess.Popen[bytes]], paths: list[Path]) -> dict[str, object]:
    return {
        "links of the host": socket.if_nameindex(),
        "routes of the host": Path("/proc/net/route").read_text(),
        **{f"process {process.pid}": process.poll() for process in strangers},
        **{str(path): path.stat().st_ino if path.exists() else None for path in paths},
    }


if __name__ == "__main__":
    harness.main("Life cycle of a network of namespaces", measure)
