"""Runs a chain of three operators through whole agents, as on nodes: a process each, on loopback.

They route, deliver and write telemetry as in an experiment; only the queues are long, so that batches form.
"""

import asyncio
import os
import resource
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from benchmarks.dataflow.hop import HOST, LIMITS, NAMES
from node_agent.agent.config import AgentConfig, Watch
from node_agent.agent.control import Costs, OpenSources, Start, Stop
from node_agent.agent.process import ProcessConfig
from node_agent.apps.dataflow.best_effort.dispatcher import Limits
from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.apps.dataflow.delivery.limits import DeliveryLimits
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query, Reliability
from node_agent.model.cost_graph import CostGraph
from node_agent.ports import Address
from node_agent.telemetry.segments import inspect
from node_agent.transport.keys import keys_of
from orchestrator.backends.agent_channel import AgentChannel

ENDS = Path(__file__).with_name("flood.py")
MOST_QUEUED, MOST_BYTES_QUEUED = 4096, 2 * 1024 * 1024
ANSWER_S = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Flow(Struct, frozen=True):
    """Measured from when a tenth of the tuples had reached the sink until all had.

    ``cpu_us``: the CPU time of a tuple in each agent, from the source to the sink. ``log_bytes``: what all
    agents write. ``rss_growth``: of the agent that grew most, in bytes.
    """

    tuples_per_second: float
    cpu_us: tuple[float, ...]
    log_bytes: float
    rss_growth: int


class _Usage(Struct, frozen=True):
    at: float
    cpu: tuple[float, ...]
    resident: tuple[int, ...]


def flow(reliability: Reliability, count: int, size: int, patience: float) -> Flow:
    """Runs the chain. Raises TimeoutError if the tuples have not passed within ``patience`` seconds."""
    with TemporaryDirectory(prefix="rove-flow-") as directory:
        return asyncio.run(_flow(Path(directory), reliability, count, size, patience))


async def _flow(directory: Path, reliability: Reliability, count: int, size: int, patience: float) -> Flow:
    agents: list[Process] = []
    channels: list[AgentChannel] = []
    try:
        for file in _configured(directory, _plan(reliability, count, size), size):
            command = (sys.executable, "-m", "node_agent.agent", "--config", str(file))
            agents.append(
                agent := await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
            )
            assert agent.stdin is not None and agent.stdout is not None
            channels.append(AgentChannel(agent.stdout, agent.stdin))
        async with asyncio.timeout(patience):
            before, after = await _pass(agents, channels)
        for channel in channels:
            await channel.ask(Stop("done"), ANSWER_S)
    finally:
        for channel in channels:
            await channel.close()
        for agent in agents:
            if agent.returncode is None:
                agent.kill()
            await agent.wait()
    if not all(inspect(directory / name).complete for name in NAMES):
        raise RuntimeError("telemetry is not complete")
    measured = count - count // 10
    logged = sum(segment.stat().st_size for name in NAMES for segment in (directory / name).iterdir())
    return Flow(
        measured / (after.at - before.at),
        tuple((late - early) / measured * 1e6 for early, late in zip(before.cpu, after.cpu, strict=True)),
        logged / count,
        max(late - early for early, late in zip(before.resident, after.resident, strict=True)),
    )


def _plan(reliability: Reliability, count: int, size: int) -> DeploymentPlan:
    source, *inner, sink = NAMES
    operators = (
        OperatorSpec(source, "flood", params={"count": count, "size": size}),
        *(OperatorSpec(name, "union", (before,)) for before, name in zip(NAMES, inner, strict=False)),
        OperatorSpec(sink, "tally", (inner[-1],), {"count": count}),
    )
    query = Query("flood", operators, reliability, module=str(ENDS))
    return DeploymentPlan(query, tuple(Replica(name, 0, name) for name in NAMES))


def _configured(directory: Path, plan: DeploymentPlan, size: int) -> list[Path]:
    """Returns the agents' files, from the source to the sink."""
    queue = min(MOST_QUEUED, MOST_BYTES_QUEUED // size)
    probes = [socket.create_server((HOST, 0)) for _ in NAMES]
    addresses = {
        name: Address(HOST, probe.getsockname()[1]) for name, probe in zip(NAMES, probes, strict=True)
    }
    for probe in probes:
        probe.close()
    dataflow = DataflowConfig(
        plan,
        limits=Limits(input_queue=queue, output_buffer=queue, sources_wait=True),
        delivery=DeliveryLimits(in_flight=queue),
    )
    files = []
    for name in NAMES:
        agent = AgentConfig(
            "flow",
            name,
            addresses,
            keys_of(bytes(32), "flow", name, NAMES),
            (dataflow.as_app(),),
            links=LIMITS,
            watch=Watch(),
        )
        files.append(directory / f"{name}.json")
        files[-1].write_bytes(msgspec.json.encode(ProcessConfig(agent, HOST, str(directory / name))))
    return files


async def _pass(agents: Sequence[Process], channels: Sequence[AgentChannel]) -> tuple[_Usage, _Usage]:
    links = {name: {after: 1.0} for name, after in pairwise(NAMES)}
    graph = CostGraph({**links, NAMES[-1]: {}}, metric="hops", source="ground_truth", taken_ns=1)
    for channel in channels:
        await channel.ask(Start(), ANSWER_S)
        await channel.ask(Costs(graph), ANSWER_S)
    await channels[0].ask(OpenSources(), ANSWER_S)
    return await _mark("warm", agents), await _mark("done", agents)


async def _mark(expected: str, agents: Sequence[Process]) -> _Usage:
    sink = agents[-1].stderr
    assert sink is not None
    line = (await sink.readline()).decode().strip()
    if line != expected:
        raise RuntimeError(f"the sink said {line!r} instead of {expected!r}")
    pids = [agent.pid for agent in agents]
    cpu, resident = tuple(map(_cpu_seconds, pids)), tuple(map(_resident_bytes, pids))
    return _Usage(time.perf_counter(), cpu, resident)


def _cpu_seconds(pid: int) -> float:
    """Returns the time spent by the process itself and, in its name, by the kernel."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
