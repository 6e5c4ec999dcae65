"""The server as a process: listens, says where, and ends at a signal or when its owner does."""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from orchestrator.errors import BadInput
from orchestrator.live.fleet import Fleet
from orchestrator.live.run import LiveRun
from orchestrator.live.server.access import LEAST_TOKEN, Access, new_token
from orchestrator.live.server.catalogue import Catalogue
from orchestrator.live.server.control import Control
from orchestrator.live.server.feeds import Feeds
from orchestrator.live.server.guard import Guard, is_loopback, is_unspecified
from orchestrator.live.server.listening import Server
from orchestrator.live.server.prometheus_door import MetricsDoor
from orchestrator.live.server.site import Site
from orchestrator.live.server.totals import Totals
from orchestrator.runs.run_directory import RunDirectory

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8470
TOKEN_VARIABLE = "ROVE_SERVE_TOKEN"
END_S = 3.0
SETTLE_S = 3.0
_STDIN = 0


@dataclass(frozen=True)
class Address:
    """``token``: as it was made or given; None where none is needed. ``view``: what the page shows first."""

    host: str
    port: int
    token: str | None
    view: str = ""

    @property
    def base(self) -> str:
        shown = DEFAULT_HOST if is_unspecified(self.host) else self.host
        return f"http://[{shown}]:{self.port}/" if ":" in shown else f"http://{shown}:{self.port}/"

    @property
    def url(self) -> str:
        """With the token behind the #: browsers send that part to nobody."""
        return self._with_token(self.base)

    @property
    def elsewhere(self) -> str | None:
        """The same for other machines, where the server listens on every address of this one."""
        if not is_unspecified(self.host):
            return None
        return self._with_token(f"http://{socket.gethostname()}:{self.port}/")

    def _with_token(self, base: str) -> str:
        return f"{base}{self.view}" if self.token is None else f"{base}{self.view}#token={self.token}"


@dataclass(frozen=True)
class Settings:
    """``root``: all runs under it; else ``runs``. ``while_input``: ends when its standard input does, and
    takes any port if ``port`` is in use.

    ``beside``: entered once the server listens, and left before it ends.
    """

    root: Path | None = None
    runs: Sequence[RunDirectory] = ()
    fleet: Callable[[], Fleet] | None = None
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str | None = None
    wants_token: bool = False
    control: bool = False
    while_input: bool = False
    metrics: Callable[[Catalogue], MetricsDoor] | None = None
    beside: Callable[[Address], AbstractAsyncContextManager[object]] | None = None
    names: Sequence[str] = field(default_factory=tuple)

    @property
    def view(self) -> str:
        """The only run, the fleet, or the list of all."""
        if self.fleet is not None:
            return "?fleet"
        if len(self.runs) != 1:
            return ""
        return f"?{'sweep' if self.runs[0].is_sweep else 'run'}={quote(self.runs[0].id, safe='')}"


def token_for(settings: Settings) -> str | None:
    """Returns the token to ask for. Raises BadInput.

    None only where nobody but this machine's own programs can ask, and can only look.
    """
    if settings.token is not None:
        if (
            len(settings.token) < LEAST_TOKEN
            or not settings.token.isascii()
            or not settings.token.isprintable()
        ):
            raise BadInput(f"{TOKEN_VARIABLE}: a token has at least {LEAST_TOKEN} printable ASCII characters")
        return settings.token
    needed = settings.wants_token or settings.control or not is_loopback(settings.host)
    return new_token() if needed else None


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[Address, Site]]:
    """Serves while it is entered. Raises BadInput if the address cannot be used."""
    token = token_for(settings)
    access = Access(token)
    names = [*settings.names, *(() if is_loopback(settings.host) else own_names())]
    async with AsyncExitStack() as held:
        listener = _listening(settings.host, settings.port, or_any=settings.while_input)
        held.callback(listener.close)
        address = Address(settings.host, listener.getsockname()[1], token, settings.view)
        catalogue = Catalogue(settings.root, settings.runs)
        feeds = Feeds(LiveRun)
        site = Site(
            Guard(settings.host, access, names),
            access,
            catalogue,
            feeds,
            Totals(LiveRun),
            Control(settings.control),
            settings.fleet() if settings.fleet is not None else None,
            settings.metrics(catalogue) if settings.metrics is not None else None,
            f"rove_{address.port}",
        )
        held.push_async_callback(site.close)
        server = Server(site.answer)
        sweeping = asyncio.create_task(server.keep_sweeping(), name="connections")
        held.callback(sweeping.cancel)
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=END_S)
        await runner.setup()
        held.push_async_callback(runner.cleanup)
        await web.SockSite(runner, listener, backlog=64).start()
        held.callback(site.end)
        if settings.beside is not None:
            await held.enter_async_context(settings.beside(address))
        yield address, site


def own_names() -> list[str]:
    """Returns the names by which others in the network may know this machine."""
    name = socket.gethostname()
    return [name, f"{name}.local"]


async def serve(settings: Settings, listens: Callable[[Address], None]) -> None:
    """Serves until SIGINT, SIGTERM, SIGHUP, or the end of its input. ``listens`` is called once it does."""
    ended, started = asyncio.Event(), False
    loop, own = asyncio.get_running_loop(), asyncio.current_task()
    assert own is not None

    def end() -> None:
        if not started and not ended.is_set():
            own.cancel()  # what is beside it may take long to start
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    try:
        async with serving(settings) as (address, site):
            started = True
            if settings.while_input:
                loop.add_reader(_STDIN, _read_input, loop, ended)
            listens(address)
            await ended.wait()
            if settings.while_input:
                await site.settle(SETTLE_S)
    except asyncio.CancelledError:
        if started or not ended.is_set():
            raise


def _read_input(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with suppress(OSError):
        if os.read(_STDIN, 4096):
            return
    loop.remove_reader(_STDIN)
    ended.set()


def run(settings: Settings, listens: Callable[[Address], None]) -> None:
    """Does the same, and blocks."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(settings, listens))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    try:
        import uvloop
    except ImportError:  # not available on every machine
        return None
    return uvloop.new_event_loop


def _listening(host: str, port: int, or_any: bool = False) -> socket.socket:
    """Returns a socket that listens, so that nobody else can take the port.
    ``or_any``: if ``port`` is in use, any that is free.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise BadInput(f"--host {host}: this is no address of this machine") from None
    family, kind, protocol, _, where = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen()
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if or_any and port and error.errno == errno.EADDRINUSE:
            return _listening(host, 0)
        what = (error.strerror or str(error)).lower()
        hint = "choose another --port, or 0 for any that is free" if port else "choose another --host"
        raise BadInput(f"cannot listen on {host} port {port}: {what}: {hint}") from error
    return listener
