"""Runs the AODV daemon as a process. On SIGTERM and SIGINT it ends in order and removes its routes."""

import asyncio
import random
import sys

from msgspec import Struct

from node_agent.aodv.capture import CannotCapture
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.daemon import PROTOCOL, AodvDaemon
from node_agent.aodv.info import InfoServer
from node_agent.aodv.reader import INFO_PORT
from node_agent.host.daemon_process import (
    EXIT_CANNOT_START,
    CannotStart,
    asked_to_end,
    remind_to_forward,
    run_file,
)
from node_agent.host.guarded_routes import GuardedRoutes
from node_agent.host.interfaces import InterfaceError, read_interface
from node_agent.manet.membership import ManetConfig
from node_agent.manet.process import manet_on, own_networks, seal_of

try:  # imported early, so that children of a fork server share it
    from node_agent.host.kernel_routes import KernelRoutes, RoutesRefused
except ImportError:
    _CAN_ROUTE = False
else:
    _CAN_ROUTE = True


class ProcessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``manet`` names at most one network; packets for it are held during a search.

    The query port is not opened if it is 0.
    """

    interface: str
    aodv: AodvConfig = AodvConfig(detection="hello")
    manet: ManetConfig = ManetConfig()
    device: str = "aodv0"
    info_port: int = INFO_PORT
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.aodv.detection != "hello":
            raise ValueError("the kernel does not report broken links: detection must be hello")
        if len(self.manet.networks) > 1:
            raise ValueError("AODV runs in one network")


def run(config: str) -> int:
    return run_file(config, ProcessConfig, live, say)


def live(config: ProcessConfig) -> int:
    try:
        asyncio.run(_live(config))
    except (CannotStart, CannotCapture, InterfaceError) as error:
        say(str(error))
        return EXIT_CANNOT_START
    return 0


def say(line: str) -> None:
    print(f"aodv: {line}", file=sys.stderr, flush=True)


async def _live(config: ProcessConfig) -> None:
    loop = asyncio.get_running_loop()
    asked = asked_to_end()
    interface = read_interface(config.interface)
    manet = manet_on([interface], config.manet)
    kernel = _kernel_routes(config.interface)
    own = own_networks(manet, [interface])
    table = GuardedRoutes(kernel, own, (config.interface, config.device), say)
    rng, seal = random.Random(config.seed), seal_of(config.manet, "aodv")
    daemon = AodvDaemon(config.aodv, interface, table, rng, manet, config.device, seal)
    try:
        await daemon.start()  # fails if another daemon has the port; nothing may be changed before that
    except OSError as error:
        raise CannotStart(f"{config.interface}: {error.strerror or error}") from None
    kernel.claim()
    loop.add_reader(kernel.fileno(), kernel.restore)
    server = InfoServer(daemon)
    try:
        if config.info_port:
            await _listen(server, config.info_port)
        remind_to_forward(say)
        await asked.wait()
    finally:
        server.close()
        loop.remove_reader(kernel.fileno())
        await daemon.stop()


async def _listen(server: InfoServer, port: int) -> None:
    try:
        await server.listen(port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a port number"
        raise CannotStart(f"port {port} cannot be used for queries: {reason}") from None


def _kernel_routes(interface: str) -> "KernelRoutes":
    if not _CAN_ROUTE:
        raise CannotStart("routes need pyroute2: pip install 'rove-testbed[agent]'")
    try:
        return KernelRoutes([interface], say, PROTOCOL)
    except RoutesRefused as error:
        raise CannotStart(str(error)) from None
