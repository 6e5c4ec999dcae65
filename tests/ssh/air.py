"""The laboratory's networks, held by a process of their own: python -m tests.ssh.air DIRECTORY

Brings up the nodes of DIRECTORY/topology.yaml on the emulated radio, and a way from here to their ``ctl0``.
Lines on stdin name the nodes whose radios are off; when it closes, whoever died, all is taken down.
"""

import asyncio
import json
import secrets
import subprocess
import sys
from pathlib import Path

from orchestrator.backends.netns import names
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.layout import CONTROL_LINK
from orchestrator.backends.netns.marks import CONTROL, Mark
from orchestrator.planning.load import load_topology
from orchestrator.radio.changes import AirChanges
from orchestrator.runs.journal import Journal

STILL_S = 60.0
"""Nodes stand; the trace has to have some length."""
_TRIES = 50


def mark_of(directory: Path) -> Mark:
    return Mark("lab", directory)


def inside(namespace: Path, *argv: str) -> list[str]:
    return ["nsenter", f"--net={namespace}", *argv]


def _ip(*argv: str, namespace: Path | None = None) -> None:
    command = ["ip", *argv] if namespace is None else inside(namespace, "ip", *argv)
    subprocess.run(command, check=True, capture_output=True, timeout=10)


def _connect(mark: Mark, nodes: dict[str, Path]) -> str:
    """A pair of links from here to the bridge of the control network; the prefix of its addresses.

    The name of the link here claims the prefix. It goes with the namespace that the other end is in.
    """
    bridge = names.HOST_NAMES / mark.namespace(CONTROL)
    for _ in range(_TRIES):
        number = 1 + secrets.randbelow(254)
        link = f"lab{number}"
        try:
            _ip("link", "add", link, "type", "veth", "peer", "name", "outside", "netns", bridge.name)
            break
        except subprocess.CalledProcessError as error:
            if b"File exists" not in error.stderr:
                raise RuntimeError(error.stderr.decode()) from error
    else:
        raise RuntimeError("no prefix is free")
    prefix = f"10.79.{number}"
    _ip("link", "set", "outside", "master", CONTROL_LINK, "up", namespace=bridge)
    _ip("addr", "add", f"{prefix}.254/24", "dev", link)
    _ip("link", "set", link, "alias", mark.alias(CONTROL), "up")
    for place, namespace in enumerate(nodes.values(), start=1):
        _ip("addr", "add", f"{prefix}.{place}/24", "dev", CONTROL_LINK, namespace=namespace)
    return prefix


def _tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


async def hold(directory: Path) -> None:
    topology = load_topology(directory / "topology.yaml")
    mark = mark_of(directory)
    with Journal.create(directory / "journal.jsonl") as journal:
        emulation = Emulation(topology, 1, STILL_S, mark, journal, true_routes=None)
        try:
            await emulation.up()
            namespaces = {node: emulation.namespace(node) for node in topology.node_names}
            _tell(prefix=_connect(mark, namespaces))
            while line := await asyncio.to_thread(sys.stdin.readline):
                emulation.check()
                silenced = json.loads(line)
                await emulation.change_air(AirChanges(silent=tuple(silenced)))
                _tell(silenced=silenced)
        finally:
            await emulation.down()


if __name__ == "__main__":
    asyncio.run(hold(Path(sys.argv[1])))
