"""A wire to a server that counts what goes over it, and can be cut at a certain byte or hold still."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.spec.inventory import Host
from orchestrator.ssh.connection import Connection
from tests.ssh.sshd import SshServer, known_hosts


@dataclass
class Relay:
    host: Host
    """The same host, at the end of this wire."""
    sent: int = 0
    received: int = 0
    cut_after: int | None = None
    """So many bytes in either direction, and every connection is gone."""
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def hold(self) -> None:
        self._flowing.clear()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def forget(self) -> None:
        """Count anew, without limit."""
        self.sent = self.received = 0
        self.cut_after = None

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outwards: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(16384):
                await self._flowing.wait()
                if outwards:
                    self.sent += len(data)
                else:
                    self.received += len(data)
                if self.cut_after is not None and max(self.sent, self.received) > self.cut_after:
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()
            writer.close()


@asynccontextmanager
async def relay_to(host: Host) -> AsyncIterator[Relay]:
    relay = Relay(host)
    relay._flowing.set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onwards = await asyncio.open_connection(host.address, host.port)
        relay._writers += [writer, onwards[1]]
        with suppress(asyncio.CancelledError):  # the test is over
            await asyncio.gather(
                relay.carry(reader, onwards[1], outwards=True),
                relay.carry(onwards[0], writer, outwards=False),
            )

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    relay.host = replace(host, address="127.0.0.1", port=server.sockets[0].getsockname()[1])
    try:
        yield relay
    finally:
        server.close()
        relay._flowing.set()
        relay.cut()
        await server.wait_closed()


Act = Callable[[Connection, Relay], Awaitable[None]]


def over_a_wire(server: SshServer, folder: Path, act: Act) -> None:
    """``act`` with a connection to the server that goes over a relay; ``folder`` is for its host key."""

    async def use() -> None:
        async with relay_to(server.host) as relay:
            connection = await Connection.open(relay.host, known_hosts(folder / "known", server))
            try:
                await act(connection, relay)
            finally:
                await connection.close()

    asyncio.run(use())
