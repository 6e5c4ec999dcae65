"""Measures how long it takes to deploy to six nodes over SSH: connect, ask for facts, pack, send, unpack,
test.

Cold: nothing is on the nodes, and nothing is packed here. Warm: the same again, over new connections. The
nodes are six real OpenSSH servers on this machine; unlike real nodes, they share its processors.
"""

import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.shared import harness
from orchestrator.deployment.bundle import bundle_for
from orchestrator.deployment.deploy import Deployed, deploy
from orchestrator.deployment.facts import probe
from orchestrator.deployment.needs import needs_of
from orchestrator.errors import RoveError
from orchestrator.planning.application import application
from orchestrator.planning.planned import PlannedRun
from orchestrator.services.olsr import Olsr
from orchestrator.spec.inventory import Host
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.fleet import on_all
from orchestrator.ssh.host_keys import KnownHosts
from tests.ssh.sshd import SshServer, known_hosts, lacking, new_key, running
from tests.unit.specs import experiment, planned, topology

NODES = [f"n{i:02}" for i in range(1, 7)]
QUERY = "query"
QUERIES = {"": "synthetic_chain", "faces_": "face_recognition"}


def measure() -> harness.Figures:
    if why := lacking():
        return {"skipped": why}
    figures: dict[str, float | int | str] = {"nodes": len(NODES), "cores": len(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as directory:
        folder = Path(directory)
        os.environ |= {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_DATA_HOME": str(folder / "data")}
        key = new_key(folder / "id")
        for label, query in QUERIES.items():
            whole = planned(experiment(topology=topology(nodes=NODES), query=query, replicas=2))
            try:
                application(QUERY).require([*whole.apps.values()])
            except RoveError as error:
                figures[f"{label}skipped"] = str(error)
                continue
            servers = [SshServer(name, folder / f"{label}{name}", key) for name in NODES]
            known = known_hosts(folder / f"{label}known", *servers)
            hosts = {server.name: server.host for server in servers}
            with running(*servers):
                for run in ("cold", "warm"):
                    figures |= asyncio.run(_deploy_to_all(hosts, known, whole, f"{label}{run}"))
            shutil.rmtree(folder / "cache")
    return figures


async def _deploy_to_all(
    hosts: dict[str, Host], known: KnownHosts, run: PlannedRun, label: str
) -> dict[str, float | int]:
    sizes: dict[str, int] = {}

    async def reach(host: Host) -> Deployed:
        connection = await Connection.open(host, known, 30)
        try:
            facts = await probe(connection)
            bundle = await asyncio.to_thread(
                bundle_for, facts, needs_of(run.apps.values(), host.name, Olsr())
            )
            sizes[host.name] = sum(layer.size for layer in bundle.layers)
            return await deploy(connection, facts, bundle)
        finally:
            await connection.close()

    begun = time.monotonic()
    outcomes = await on_all(hosts, reach)
    seconds = time.monotonic() - begun
    return {
        f"{label}_s": seconds,
        f"{label}_failures": sum(isinstance(outcome, RoveError) for outcome in outcomes.values()),
        f"{label}_bundles_mb": sum(sizes.values()) / 1e6,
    }


if __name__ == "__main__":
    harness.main("Deployment to six nodes over SSH", measure)
