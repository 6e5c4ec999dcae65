"""Runs the OLSR daemon as a process: real sockets, the kernel's routes, olsrd's query ports.

On SIGTERM and SIGINT it ends in order: it says goodbye to the other nodes and removes its routes.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from node_agent import __version__
from node_agent.host.daemon_process import (
    EXIT_CANNOT_START,
    CannotStart,
    asked_to_end,
    remind_to_forward,
    run_file,
)
from node_agent.host.guarded_routes import GuardedRoutes
from node_agent.host.interfaces import InterfaceError, InterfaceFacts, read_interface
from node_agent.host.nl80211 import Nl80211Stations, NoStations
from node_agent.host.route_table import LoggedRoutes, NoRoutes, RouteTable
from node_agent.host.station_file import StationFile
from node_agent.manet.membership import ManetConfig
from node_agent.manet.process import manet_on, own_networks, seal_of
from node_agent.olsr.broadcast import OsBroadcast
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface, Olsr
from node_agent.olsr.info.jsoninfo import JSONINFO
from node_agent.olsr.info.netjson import NETJSON
from node_agent.olsr.info.server import CannotListen, InfoServer
from node_agent.olsr.info.snapshot import Snapshot
from node_agent.olsr.info.txtinfo import TXTINFO
from node_agent.olsr.service import OlsrService
from node_agent.olsr.wire import number

try:  # imported early, so that children of a fork server share it
    from node_agent.host.kernel_routes import KernelRoutes, RoutesRefused
except ImportError:
    _CAN_ROUTE = False
else:
    _CAN_ROUTE = True

VERSION = f"rove-olsr {__version__}"


class ProcessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The first interface's address is the node's main address. A query port of 0 is not opened.

    For quality ``fast``: ``stations`` names the file with an emulated radio's station table; if it is empty,
    the kernel is asked. ``sensitivity``: the signal in dBm at which half of the full-size frames arrive.
    """

    interfaces: tuple[str, ...]
    olsr: OlsrConfig = OlsrConfig()
    manet: ManetConfig = ManetConfig()
    jsoninfo_port: int = 9090
    txtinfo_port: int = 2006
    netjson_port: int = 2005
    routes: bool = True
    log: bool = False
    seed: int | None = None
    stations: str = ""
    sensitivity: float | None = None

    def __post_init__(self) -> None:
        if not self.interfaces:
            raise ValueError("at least one interface is needed")
        if len(set(self.interfaces)) < len(self.interfaces):
            raise ValueError("an interface is named twice")
        for port in (self.jsoninfo_port, self.txtinfo_port, self.netjson_port):
            if not 0 <= port < 65536:
                raise ValueError(f"{port} is not a port number")
        if self.sensitivity is not None and not -130 <= self.sensitivity <= 0:
            raise ValueError(f"a sensitivity is between -130 and 0 dBm: {self.sensitivity} given")


def run(config: str) -> int:
    return run_file(config, ProcessConfig, live, say)


def live(config: ProcessConfig) -> int:
    try:
        asyncio.run(_live(config))
    except (CannotStart, InterfaceError, CannotListen) as error:
        say(str(error))
        return EXIT_CANNOT_START
    return 0


def say(line: str) -> None:
    print(f"olsr: {line}", file=sys.stderr, flush=True)


async def _live(config: ProcessConfig) -> None:
    loop = asyncio.get_running_loop()
    asked = asked_to_end()
    facts = [read_interface(name) for name in config.interfaces]
    interfaces = [Interface(each.name, number(each.address), each.mtu, each.hardware) for each in facts]
    radio = _radio(config, facts[0]) if config.olsr.quality == "fast" else None
    manet = manet_on(facts, config.manet)
    kernel = _kernel_routes(config) if config.routes else None
    table: RouteTable = kernel or NoRoutes()
    if config.log:
        table = LoggedRoutes(table, _log_line)
    if kernel is not None:
        own = own_networks(manet, facts, config.olsr.accept_networks)
        table = GuardedRoutes(table, own, config.interfaces, say)
    service = OlsrService(
        config.olsr,
        interfaces,
        OsBroadcast(facts, say),
        table,
        time.monotonic_ns,
        random.Random(config.seed),
        manet,
        seal_of(config.manet, "olsr"),
        radio,
    )
    server = InfoServer(lambda: _snapshot(config, service.daemon))
    try:
        await service.start()  # fails if another daemon has the port; nothing may be changed before that
        if kernel is not None:
            kernel.claim()
            loop.add_reader(kernel.fileno(), kernel.restore)
            remind_to_forward(say)
        for dialect, port in (
            (JSONINFO, config.jsoninfo_port),
            (TXTINFO, config.txtinfo_port),
            (NETJSON, config.netjson_port),
        ):
            if port:
                await server.listen(dialect, port)
        await asked.wait()
        await service.say_goodbye()
    finally:
        server.close()
        if kernel is not None:
            loop.remove_reader(kernel.fileno())
        await service.stop()
        if radio is not None:
            radio.close()


def _radio(config: ProcessConfig, facts: InterfaceFacts) -> StationFile | Nl80211Stations | None:
    """Returns what knows the links of the first interface; None if nothing does."""
    if config.stations:
        return StationFile(config.stations)
    if not facts.wireless:
        say(f"{facts.name} is not wireless: links are rated by HELLOs alone")
        return None
    try:
        return Nl80211Stations(facts.index, config.sensitivity)
    except NoStations as error:
        say(f"{facts.name}: {error}: links are rated by HELLOs alone")
        return None


def _kernel_routes(config: ProcessConfig) -> "KernelRoutes":
    if not _CAN_ROUTE:
        raise CannotStart(
            "routes need pyroute2: pip install 'rove-testbed[agent]', or leave routes alone (--no-routes)"
        )
    try:
        return KernelRoutes(config.interfaces, say)
    except RoutesRefused as error:
        raise CannotStart(f"{error}; or leave routes alone (--no-routes)") from None


def _snapshot(config: ProcessConfig, daemon: Olsr) -> Snapshot:
    return Snapshot(
        view=daemon.view(time.monotonic_ns()),
        config=config.olsr,
        interfaces={facts.name: facts for facts in _present(config.interfaces)},
        counters=daemon.counters.as_dict(),
        refusals=tuple(daemon.counters.refusals),
        version=VERSION,
        pid=os.getpid(),
        system_time_s=int(time.time()),
    )


def _present(names: Iterable[str]) -> Iterator[InterfaceFacts]:
    for name in names:
        with suppress(InterfaceError):
            yield read_interface(name)


def _log_line(line: str) -> None:
    print(f"{time.time():.3f} {line}", flush=True)
