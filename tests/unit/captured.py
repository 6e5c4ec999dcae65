"""What real daemons have answered (tests/data), and a server on loopback that answers so again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from node_agent.linkstate.reader import Reading

DATA = Path(__file__).parent.parent / "data"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def captured(name: str) -> bytes:
    return (DATA / name).read_bytes()


def costs(reading: Reading) -> dict[tuple[str, str], float]:
    return {(u, v): edge.cost for u, row in reading.edges.items() for v, edge in row.items()}


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[int]:
    """The port on which each connection gets ``answer``, which may be cut off when the test ends."""
    running: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.append(task)
        try:
            await answer(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the peer has left, or the test is over
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def saying(data: bytes) -> Answer:
    """Reads the question and says ``data``, whatever was asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(data)
        await writer.drain()

    return answer


def pages(content: Mapping[str, bytes], head: str = "HTTP/1.1 200 OK\r\n") -> Answer:
    """HTTP as olsrd speaks it: the length with blanks behind it, and 404 for all that is not there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readline()).decode().split()[1]
        body = content.get(path)
        if body is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 22     \r\n\r\nerror: 404 Not Found\n\n")
        else:
            writer.write(f"{head}Content-Length: {len(body)}     \r\n\r\n".encode() + body)
        await writer.drain()

    return answer
