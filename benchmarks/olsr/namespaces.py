"""Runs networks of our OLSR daemons as processes in namespaces, over the 802.11b radio in real time."""

import asyncio
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.olsr.tables import Tables
from benchmarks.radio.tap import network_of
from node_agent.olsr.config import OlsrConfig
from orchestrator.backends.netns import names
from orchestrator.backends.netns.forkclient import Child, ForkServer, Launch
from orchestrator.backends.netns.layout import RADIO_LINK, numbered
from orchestrator.backends.netns.radio.client import RadioProcess
from orchestrator.backends.netns.radio.config import radio_config
from orchestrator.model.trace import Trace
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.settings import Mac
from orchestrator.services.program import Entry

_HOST_MASK = "FFFFFFFF"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class NamespaceNetwork:
    """Its asyncio loop runs only inside the calls."""

    def __init__(
        self,
        runner: asyncio.Runner,
        radio: RadioProcess,
        daemons: dict[str, Child],
        node_at: dict[str, str],
        started_s: float,
    ) -> None:
        self._runner, self._radio, self._daemons, self._node_at = runner, radio, daemons, node_at
        self.started_s = started_s

    def now_s(self) -> float:
        return model_time_s(self._radio)

    def run_until(self, seconds: float) -> None:
        self._radio.check()
        self._runner.run(asyncio.sleep(max(seconds - self.now_s(), 0.0)))

    def tables(self) -> Tables:
        return {node: dict(self._host_routes(daemon.pid)) for node, daemon in self._daemons.items()}

    def cpu_seconds(self) -> float:
        return sum(_cpu_seconds(daemon.pid) for daemon in self._daemons.values())

    def silence(self, node: str) -> None:
        daemon = self._daemons.pop(node)
        self._runner.run(daemon.signal(signal.SIGKILL))

    def _host_routes(self, pid: int) -> Iterator[tuple[str, str]]:
        """Returns destination and next hop of the kernel's routes in the namespace of that process."""
        for line in Path(f"/proc/{pid}/net/route").read_text().splitlines()[1:]:
            _, destination, gateway, *_, mask, _, _, _ = line.split()
            if mask == _HOST_MASK:
                to = self._node_at[_dotted(destination)]
                yield to, to if int(gateway, 16) == 0 else self._node_at[_dotted(gateway)]


@contextmanager
def daemons_in_namespaces(
    trace: Trace, choice: RadioChoice, config: OlsrConfig, seed: int = 1
) -> Iterator[NamespaceNetwork]:
    layout = numbered(list(trace.paths))
    with network_of(layout) as net, asyncio.Runner() as runner:
        radio = RadioProcess()
        mark = net.mark

        async def start() -> tuple[ForkServer, dict[str, Child], float]:
            await radio.start(radio_config(mark, layout, trace, choice, Mac(), seed), net.ends)
            server = await ForkServer.start(mark, preload=("node_agent.olsr.process",))
            file = mark.directory / "olsr.json"
            file.write_bytes(msgspec.json.encode({"interfaces": [RADIO_LINK], "olsr": config}))
            program = Entry("node_agent.olsr.process:run", {"config": str(file)})
            started_s = model_time_s(radio)
            daemons = {}
            for node in trace.paths:
                stderr = mark.directory / f"{node}.stderr"
                launch = Launch(program, names.HOST_NAMES / mark.namespace(node), stderr=stderr)
                daemons[node] = await server.spawn(launch)
            return server, daemons, started_s

        try:
            server, daemons, started_s = runner.run(start())
            try:
                node_at = {str(node.radio.ip): node.name for node in layout.nodes}
                yield NamespaceNetwork(runner, radio, daemons, node_at, started_s)
            finally:
                runner.run(server.close())
        finally:
            runner.run(radio.close())


def model_time_s(radio: RadioProcess) -> float:
    return (time.monotonic_ns() - radio.origin_ns) / 1e9


def _cpu_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_PER_S


def _dotted(little_endian_hex: str) -> str:
    return socket.inet_ntoa(struct.pack("<I", int(little_endian_hex, 16)))
