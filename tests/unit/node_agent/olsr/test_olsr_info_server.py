"""The query ports on real sockets: every client gets an end, whatever it does."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from node_agent.olsr.info.jsoninfo import JSONINFO
from node_agent.olsr.info.server import MOST_CLIENTS, CannotListen, InfoServer
from node_agent.olsr.info.snapshot import Snapshot
from node_agent.olsr.info.txtinfo import TXTINFO
from tests.unit.node_agent.olsr.test_olsr_info import snapshot

HOST = "127.0.0.1"
Scenario = Callable[[InfoServer, int], Awaitable[None]]


def serve(scenario: Scenario) -> None:
    async def run() -> None:
        server = InfoServer(lambda: snapshot("node1"))
        try:
            async with asyncio.timeout(20):
                await scenario(server, await server.listen(JSONINFO, 0))
        finally:
            server.close()

    asyncio.run(run())


async def ask(port: int, *pieces: bytes, pause: float = 0.0, end: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause)
    if end:
        writer.write_eof()
    answer = await reader.read(-1)
    writer.close()
    return answer


@pytest.mark.parametrize(
    "pieces",
    [
        (b"/links",),
        (b"/links\n",),
        (b"/li", b"nks\n"),
        (b"GET /plain/links HTTP/1.0\r\n\r\n",),
        (b"GET /plain/links HT", b"TP/1.1\r\nHost: x\r\n", b"Accept: */*\r\n\r\n"),
    ],
)
def test_a_request_may_come_in_pieces_and_without_a_line_end(pieces: tuple[bytes, ...]) -> None:
    async def scenario(_: InfoServer, port: int) -> None:
        assert b'"links":' in await ask(port, *pieces, pause=0.01)

    serve(scenario)


def test_a_client_that_says_nothing_is_told_so() -> None:
    async def scenario(_: InfoServer, port: int) -> None:
        assert await ask(port) == b"error: 408 Request Timeout\n\n"
        assert b'"topology":' in await ask(port, end=True)

    serve(scenario)


def test_a_request_that_never_ends_is_cut_off() -> None:
    async def scenario(_: InfoServer, port: int) -> None:
        assert (await ask(port, b"x" * 8192)).startswith(b"error: 413")
        assert (await ask(port, b"GET /links HTTP/1.0\r\n" + b"A: b\r\n" * 2000)).startswith(b"HTTP/1.0 413")

    serve(scenario)


def test_sleepers_do_not_keep_others_out_for_long() -> None:
    async def scenario(_: InfoServer, port: int) -> None:
        sleepers = [await asyncio.open_connection(HOST, port) for _ in range(MOST_CLIENTS)]
        assert (await ask(port, b"/links\n")).startswith(b"error: 503")
        for reader, writer in sleepers:
            await reader.read(-1)
            writer.close()
        assert b'"links":' in await ask(port, b"/links\n")

    serve(scenario)


def test_a_port_that_is_taken_is_named() -> None:
    async def scenario(server: InfoServer, port: int) -> None:
        with pytest.raises(CannotListen, match=f"port {port} of 127.0.0.1 .* Address already in use"):
            await server.listen(TXTINFO, port)
        with pytest.raises(CannotListen, match="not a port number"):
            await server.listen(TXTINFO, 70000)

    serve(scenario)


def test_a_closed_server_lets_nobody_wait() -> None:
    async def scenario(server: InfoServer, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        await asyncio.sleep(0.05)
        server.close()
        assert await reader.read(-1) == b""
        with pytest.raises(ConnectionError):
            await ask(port, b"/links")
        writer.close()

    serve(scenario)


def test_all_ports_tell_of_the_same_moment() -> None:
    taken = 0

    async def run() -> None:
        def take() -> Snapshot:
            nonlocal taken
            taken += 1
            return snapshot("node1")

        server = InfoServer(take)
        ports = [await server.listen(dialect, 0) for dialect in (JSONINFO, TXTINFO)]
        await asyncio.gather(*(ask(port, b"/all\n") for port in ports))
        server.close()

    asyncio.run(run())
    assert taken == 1
