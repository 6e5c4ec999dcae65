"""One process of a chain, source, relay or sink: over connections between replicas, or over plain streams.

All but the source listen and print their port; then they pass on what they get. At the end they print
figures, measured from when the first tenth had passed.
"""

import argparse
import asyncio
import json
import resource
import time
from contextlib import suppress
from pathlib import Path

import uvloop

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.wire.admission import PlanAdmission
from node_agent.apps.dataflow.wire.codec import CODEC, TupleConnection, TupleServer
from node_agent.apps.dataflow.wire.messages import Data
from node_agent.model.refusals import Refusals
from node_agent.ports import Address
from node_agent.ports.os_port import OsPort
from node_agent.transport.authentication import Credentials, Digests
from node_agent.transport.keys import keys_of
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Pair
from node_agent.transport.server import ConnectionServer

HOST = "127.0.0.1"
GATHERED = 256 * 1024
OPERATORS = 3
NAMES = ("source", *(f"op{i}" for i in range(1, OPERATORS + 1)), "sink")
LAST = len(NAMES) - 1
LIMITS = ConnectionLimits(
    window_items=4096, window_bytes=4 * 1024 * 1024, batch_items=1024, batch_bytes=512 * 1024
)
PLAN = DeploymentPlan(
    Query("chain", tuple(OperatorSpec(n, "work", NAMES[max(0, i - 1) : i]) for i, n in enumerate(NAMES))),
    tuple(Replica(name, 0, name) for name in NAMES),
)
STREAM_BUFFERS = {"streams": 64 * 1024, "wide_streams": GATHERED}
"""asyncio's own default, and one that suits large transfers on loopback better."""


class Task(argparse.Namespace):
    """``place``: the position in the chain; ``next``: the port of the following process; ``count`` tuples of
    ``size`` bytes.
    """

    over: str
    place: int
    next: int
    count: int
    size: int


class Progress:
    def __init__(self, task: Task) -> None:
        self.over = asyncio.Event()
        self._all = task.count * task.size
        self._size = task.size
        self._passed = 0
        self._warm = 0
        self._warm_at = self._all // 10
        self._started = self._used = 0.0
        self._resident = 0

    def passed(self, size: int) -> None:
        self._passed += size
        if not self._warm and self._passed >= self._warm_at:
            self._warm = self._passed
            self._started, self._used = time.perf_counter(), time.process_time()
            self._resident = resident_bytes()
        if self._passed >= self._all:
            self.over.set()

    def report(self) -> dict[str, float]:
        tuples = (self._passed - self._warm) / self._size
        return {
            "tuples_per_second": tuples / (time.perf_counter() - self._started),
            "cpu_us_per_tuple": (time.process_time() - self._used) / tuples * 1e6,
            "rss_growth_bytes": resident_bytes() - self._resident,
        }


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def fail(error: BaseException) -> None:
    raise SystemExit(f"the connection failed: {error}")


async def over_connections(task: Task, progress: Progress) -> None:
    port, digests = OsPort(HOST), Digests()
    own, to = NAMES[task.place], NAMES[min(task.place + 1, LAST)]
    credentials = Credentials("benchmark", own, keys_of(bytes(32), "benchmark", own, NAMES))
    key, refusals = credentials.to(to, "connection"), Refusals()
    pair = Pair(f"{own}/0", f"{to}/0")
    connection = TupleConnection(
        port, Address(HOST, task.next), key, pair, CODEC, LIMITS, digests, refusals, fail
    )

    async def pass_on(pair: Pair, batch: Data) -> None:
        items = batch.items
        while items and task.place < LAST:
            items = items[await connection.send(items) :]
        progress.passed(sum(item.size for item in batch.items))

    server: TupleServer = ConnectionServer(
        port,
        credentials,
        CODEC,
        PlanAdmission(PLAN, own),
        dict.fromkeys(NAMES, HOST),
        LIMITS,
        digests,
        refusals,
        pass_on,
        fail,
    )
    if task.place > 0:
        print((await server.open(0)).port, flush=True)
    else:
        await send_tuples(task, connection, progress)
    await progress.over.wait()
    await connection.close()
    await asyncio.sleep(0.5)  # until the receiver has it
    await server.close()


def payload_of(task: Task, tau: int) -> bytes:
    """Returns a new object each time, so that caches do not help."""
    return tau.to_bytes(8, "big") + bytes(task.size - 8)


async def send_tuples(task: Task, connection: TupleConnection, progress: Progress) -> None:
    waiting: list[StreamTuple] = []
    for tau in range(1, task.count + 1):
        waiting.append(StreamTuple("source/0", tau, tau - 1, tau, tau - 1, (payload_of(task, tau),)))
        if len(waiting) * task.size >= GATHERED or tau == task.count:
            while waiting:
                sent = await connection.send(waiting)
                progress.passed(sent * task.size)
                del waiting[:sent]


async def over_streams(task: Task, progress: Progress) -> None:
    if task.place < LAST:
        _, writer = await asyncio.open_connection(HOST, task.next)
    most = STREAM_BUFFERS[task.over]

    async def pass_on(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # at the end; asyncio would print a warning
            while data := await reader.read(most):
                if task.place < LAST:
                    writer.write(data)
                    await writer.drain()
                progress.passed(len(data))

    if task.place > 0:
        server = await asyncio.start_server(pass_on, HOST, 0, limit=most)
        print(server.sockets[0].getsockname()[1], flush=True)
    else:
        for tau in range(task.count):
            writer.write(payload_of(task, tau))
            await writer.drain()
            progress.passed(task.size)
    await progress.over.wait()
    if task.place < LAST:
        writer.close()
        await writer.wait_closed()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("over", choices=("links", *STREAM_BUFFERS))
    for name in ("place", "next", "count", "size"):
        parser.add_argument(name, type=int)
    task = parser.parse_args(namespace=Task())
    progress = Progress(task)
    await (over_connections if task.over == "links" else over_streams)(task, progress)
    print(json.dumps(progress.report()), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
