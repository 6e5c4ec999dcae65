"""Measures how long it takes to reach 50 nodes over SSH: connect to all, run a command on all, and another
one.

The nodes are 50 real OpenSSH servers on this machine, with their own accounts and keys; unlike real nodes,
they share its processors.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from benchmarks.shared import harness
from orchestrator.errors import RoveError
from orchestrator.spec.inventory import Host
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.fleet import AT_ONCE, on_all
from orchestrator.ssh.host_keys import KnownHosts
from tests.ssh.sshd import SshServer, known_hosts, lacking, new_key, running

NODES = 50
COMMAND = ("uname", "-n")


def measure() -> harness.Figures:
    if why := lacking():
        return {"skipped": why}
    with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as directory:
        folder = Path(directory)
        key = new_key(folder / "id")
        servers = [SshServer(f"n{i:02}", folder / f"n{i:02}", key) for i in range(1, NODES + 1)]
        known = known_hosts(folder / "known", *servers)
        with running(*servers):
            return asyncio.run(_reach({server.name: server.host for server in servers}, known))


async def _reach(hosts: dict[str, Host], known: KnownHosts) -> harness.Figures:
    begun = time.monotonic()
    reached = await on_all(hosts, lambda host: Connection.open(host, known, 30))
    connected = time.monotonic()
    connections = {name: found for name, found in reached.items() if isinstance(found, Connection)}
    failures = len(hosts) - len(connections)
    failures += await _command_on_all(connections)
    answered = time.monotonic()
    failures += await _command_on_all(connections)
    again = time.monotonic()
    await on_all(connections, Connection.close)
    return {
        "nodes": len(hosts),
        "at_once": AT_ONCE,
        "cores": len(os.sched_getaffinity(0)),
        "connect_s": connected - begun,
        "command_s": answered - connected,
        "connect_and_command_s": answered - begun,
        "command_again_s": again - answered,
        "failures": failures,
    }


async def _command_on_all(connections: dict[str, Connection]) -> int:
    outcomes = await on_all(connections, lambda connection: connection.output(COMMAND))
    return sum(isinstance(outcome, RoveError) for outcome in outcomes.values())


if __name__ == "__main__":
    harness.main("50 nodes over SSH", measure)
