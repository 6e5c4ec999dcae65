"""Runs an agent as a process of its own: ``python -m node_agent.agent --config FILE``.

Its owner controls it over standard input and output. It stops in order when asked to, on SIGTERM, and when
its owner is gone.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig, BadConfig, check, watched_hosts
from node_agent.agent.control_lines import encode, open_standard_streams, serve
from node_agent.agent.controlled_agent import ControlledAgent
from node_agent.agent.costs import Routed
from node_agent.extensions import ExtensionError
from node_agent.extensions.failures import Failures
from node_agent.linkstate.base import LinkState
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.kernel import KernelReach
from node_agent.linkstate.overhead import AskedOverhead, OverheadConfig
from node_agent.linkstate.pushed import PushedLinkState
from node_agent.linkstate.registry import open_link_state, problems
from node_agent.linkstate.source import Downstream
from node_agent.model.refusals import Refusals
from node_agent.ports import PortError
from node_agent.ports.os_port import OsPort
from node_agent.telemetry.segment_log import LogError, SegmentLog

EXIT_FAILED = 1
EXIT_BAD_CONFIG = 2
_CLOSE_TIMEOUT_S = 2.0
MOST_LOGGED_ERRORS = 20
"""Unhandled errors that are logged in full. Without a limit, a peer that causes them could fill the disk."""


class ProcessConfig(Struct, frozen=True):
    """What an agent's process needs besides the agent's own configuration.

    ``host``: the address at which other agents reach it. ``segments``: the directory of its telemetry.
    ``directory``: that of the files which its applications leave as results. ``kernel_routes``: a routing
    daemon sets the kernel's routes, so only nodes with one count as reached.
    """

    agent: AgentConfig
    host: str
    segments: str
    link_state: LinkStateConfig = LinkStateConfig()
    overhead: OverheadConfig | None = None
    seed: int | None = None
    directory: str | None = None
    kernel_routes: bool = False


def run(config: str) -> int:
    """Runs the agent. Returns the exit status: 0 if it stopped in order, 1 if it failed, 2 for a bad
    configuration.
    """
    try:
        read = msgspec.json.decode(Path(config).read_bytes(), type=ProcessConfig)
        if wrong := problems(read.link_state):
            raise BadConfig("; ".join(wrong))
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_run_process(read))
    except (OSError, msgspec.DecodeError, BadConfig, ExtensionError, LogError, PortError) as error:
        print(f"{config}: {error}", file=sys.stderr)
        return EXIT_BAD_CONFIG


def limited_error_handler(most: int = MOST_LOGGED_ERRORS) -> Callable[[Any, dict[str, Any]], None]:
    """Returns an exception handler for a loop that logs like the default one, but only ``most`` errors."""
    logged = 0

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal logged
        logged += 1
        if logged <= most:
            loop.default_exception_handler(context)
        elif logged == most + 1:
            print(f"{most} errors that nobody handled: further ones are not shown", file=sys.stderr)

    return handle


async def _run_process(config: ProcessConfig) -> int:
    asyncio.get_running_loop().set_exception_handler(limited_error_handler())
    port = OsPort(config.host, config.seed)
    apps = check(config.agent)
    names = {address.host: node for node, address in config.agent.addresses.items()}
    refusals, failures = Refusals(), Failures()
    opened = open_link_state(
        config.link_state,
        port,
        names,
        Downstream(*watched_hosts(config.agent, apps)),
        config.agent.keys,
        refusals,
        failures,
    )
    async with opened as link_state:
        return await _run_agent(config, port, link_state, refusals, failures)


async def _run_agent(
    config: ProcessConfig, port: OsPort, link_state: LinkState, refusals: Refusals, failures: Failures
) -> int:
    log = SegmentLog(Path(config.segments), config.agent.run, config.agent.node, port.now_ns)
    overhead = AskedOverhead(config.overhead) if config.overhead is not None else None
    directory = Path(config.directory) if config.directory is not None else None
    routed = _routed(config) if config.kernel_routes else None
    agent = Agent(config.agent, port, link_state, log, overhead, directory, refusals, failures, routed)
    pushed = link_state if isinstance(link_state, PushedLinkState) else None
    controlled = ControlledAgent(agent, port, pushed)
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    reader, writer = await open_standard_streams()
    served = asyncio.create_task(serve(reader, writer, controlled.handle, controlled.reject))
    failed = asyncio.create_task(agent.wait_failed())
    asked = asyncio.create_task(signalled.wait())
    await asyncio.wait([served, failed, asked], return_when=asyncio.FIRST_COMPLETED)
    for task in (served, failed, asked):
        task.cancel()
    reason = "asked by a signal"
    try:
        if served.done():
            reason = served.result()
    finally:
        await agent.stop(reason)
    if agent.failure is not None:
        writer.write(encode(controlled.report()))
        with suppress(OSError):  # stderr may be a file on a full disk
            print(agent.failure, file=sys.stderr)
    await _close(writer)
    return 0 if agent.failure is None else EXIT_FAILED


def _routed(config: ProcessConfig) -> Routed:
    kernel = KernelReach(config.host)
    hosts = {node: address.host for node, address in config.agent.addresses.items()}

    def routed(nodes: Iterable[str]) -> set[str]:
        wanted = {hosts[node]: node for node in nodes if node in hosts}
        return {wanted[host] for host in kernel.among(wanted)}

    return routed


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await writer.wait_closed()
    except (TimeoutError, ConnectionError):
        pass  # the owner is gone


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not available on every machine
        return None
    return uvloop.new_event_loop
