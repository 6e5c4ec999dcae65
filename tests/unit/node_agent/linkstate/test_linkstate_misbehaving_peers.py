"""Peers that answer wrongly, in part, slowly, without end or not at all: a typed error within a second."""

import asyncio
import socket
import time

import pytest

from node_agent.linkstate.reader import Garbage, LinkStateError, Reader, Refused, Rejected, TimedOut
from node_agent.linkstate.registry import LINK_STATE_READERS
from node_agent.linkstate.source import Source
from node_agent.ports.os_port import OsPort
from tests.unit.captured import Answer, saying, server

BUSY_MACHINE_S = 3.0
DAEMONS = [kind for kind in LINK_STATE_READERS if LINK_STATE_READERS[kind].asks and kind != "kernel"]


def reader(kind: str, host: str, port: int) -> Reader:
    made: Reader = LINK_STATE_READERS[kind].open(Source(host, port, OsPort(host), {}))
    return made


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def a_byte_a_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for byte in b"HTTP/1.0 200 OK\r\n\r\n" + b" " * 100:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1)


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b" " * 1_000_000)
        await writer.drain()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.0 2")
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


MISBEHAVIOURS: dict[str, tuple[Answer, type[LinkStateError]]] = {
    "silence": (silence, TimedOut),
    "a byte a second": (a_byte_a_second, TimedOut),
    "hangs up": (hang_up, Garbage),
    "binary": (saying(bytes(range(256)) * 100), Garbage),
    "half a number": (saying(b'{"topology": [{"lastHopIP": "10.0.0.1", "tcEdgeCost": 1.'), Garbage),
    "other JSON": (saying(b'{"topology": 3, "mid": 3, "interfaces": 3, "type": [], "edge": {}}'), Garbage),
    "null": (saying(b"null"), Garbage),
    "deep JSON": (saying(b'{"unknown": ' + b"[" * 100_000), Garbage),
    "only headers": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5"), Garbage),
    "less than it says": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"), Garbage),
    "impossible length": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"), Garbage),
}


def failure(kind: str, answer: Answer) -> tuple[LinkStateError, float]:
    async def scenario() -> tuple[LinkStateError, float]:
        async with server(answer) as port:
            start = time.monotonic()
            with pytest.raises(LinkStateError) as caught:
                await reader(kind, "127.0.0.1", port).read()
            assert len(asyncio.all_tasks()) <= 1 + 3  # the server's; no question is left behind
            return caught.value, time.monotonic() - start

    return asyncio.run(scenario())


@pytest.mark.parametrize("kind", DAEMONS)
@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_misbehaviour_is_a_typed_error(kind: str, name: str) -> None:
    answer, expected = MISBEHAVIOURS[name]
    error, took = failure(kind, answer)
    assert isinstance(error, expected)
    assert str(error) and "\n" not in str(error) and len(str(error)) < 300
    assert took < 1 + BUSY_MACHINE_S


@pytest.mark.parametrize("kind", DAEMONS)
def test_an_endless_answer_is_not_kept(kind: str) -> None:
    error, took = failure(kind, endless)
    assert isinstance(error, (Garbage, TimedOut))
    assert took < 1 + BUSY_MACHINE_S


@pytest.mark.parametrize("kind", DAEMONS)
def test_a_connection_that_breaks(kind: str) -> None:
    error, _ = failure(kind, reset)
    assert isinstance(error, (Refused, Garbage))


@pytest.mark.parametrize("kind", [kind for kind in DAEMONS if kind not in ("oonf", "babeld")])
def test_not_found(kind: str) -> None:
    error, _ = failure(kind, saying(b"HTTP/1.1 404 Not Found\r\n\r\nerror: 404 Not Found\n\n"))
    assert isinstance(error, Rejected)
    assert "404" in str(error)


@pytest.mark.parametrize("kind", DAEMONS)
@pytest.mark.parametrize("port", [None, 70000, -1])
def test_nobody_listens(kind: str, port: int | None) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        made = reader(kind, "127.0.0.1", bound.getsockname()[1] if port is None else port)
        with pytest.raises(Refused):
            asyncio.run(made.read())
