"""The accepting side of the connections between replicas.

A connection begins with a hello that must name this run and two neighbouring replicas of the plan, else it
is closed and counted. Then each frame is a tuple; the next one is read when the last was taken, which is
what pushes back on the sender.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from node_agent.model.plan import DeploymentPlan
from node_agent.model.tuples import StreamTuple
from node_agent.ports import Listener, Port, PortError, Stream
from node_agent.transport.framing import (
    PROTOCOL_VERSION,
    FrameError,
    Hello,
    Welcome,
    decode_tuple,
    encode,
)
from node_agent.transport.link import read_frame

HELLO_TIMEOUT = 5.0
# How long a connection may still be read after its sender has opened another one in its place.
SUPERSEDED_GRACE = 10.0

OnTuple = Callable[[Hello, StreamTuple], Awaitable[None]]
OnFailure = Callable[[Exception], None]


def refusal(hello: Hello, run: str, node: str, plan: DeploymentPlan) -> str | None:
    """Why a connection that begins with ``hello`` is not welcome on ``node``; None if it is."""
    if hello.version != PROTOCOL_VERSION:
        return "version"
    if hello.run != run:
        return "run"
    receiver = next((r for r in plan.on(node) if r.id == hello.receiver), None)
    if receiver is None:
        return "receiver"
    senders = (r.id for name in plan.query.upstream(receiver.operator) for r in plan.of(name))
    return None if hello.sender in senders else "sender"


class LinkServer:
    """``on_tuple`` takes the tuples; ``on_failure`` hears of errors that are not the peer's doing."""

    def __init__(
        self, port: Port, run: str, node: str, plan: DeploymentPlan, on_tuple: OnTuple, on_failure: OnFailure
    ) -> None:
        self._port = port
        self._run = run
        self._node = node
        self._plan = plan
        self._on_tuple = on_tuple
        self._on_failure = on_failure
        self._listener: Listener | None = None
        self._connections: dict[asyncio.Task[None], None] = {}
        self._readers: dict[tuple[str, str], asyncio.Timeout] = {}
        self.rejected: Counter[str] = Counter()

    async def open(self, port: int) -> None:
        self._listener = await self._port.listen(port, self._accept)

    async def close(self) -> None:
        """Accept no more, end every connection. May be repeated."""
        if self._listener is not None:
            self._listener.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections)

    async def _accept(self, stream: Stream) -> None:
        # A task of our own, so that close() can end it whatever the port does with the one it made.
        connection = asyncio.create_task(self._serve(stream), name="incoming link")
        self._connections[connection] = None
        connection.add_done_callback(lambda done: self._connections.pop(done, None))
        await asyncio.wait([connection])

    async def _serve(self, stream: Stream) -> None:
        try:
            hello = await self._greet(stream)
            if hello is not None:
                await self._read(stream, hello)
        except FrameError:
            self.rejected["frame"] += 1
        except PortError:
            pass  # the sender's side of the link notices and reconnects
        except Exception as error:
            self._on_failure(error)
        finally:
            stream.close()

    async def _greet(self, stream: Stream) -> Hello | None:
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                hello, _ = await read_frame(stream)
        except TimeoutError:
            self.rejected["timeout"] += 1
            return None
        if not isinstance(hello, Hello):
            raise FrameError("the peer did not begin with a hello")
        reason = refusal(hello, self._run, self._node, self._plan)
        if reason is not None:
            self.rejected[reason] += 1
            return None
        await stream.write(encode(Welcome()))
        return hello

    async def _read(self, stream: Stream, hello: Hello) -> None:
        pair = (hello.sender, hello.receiver)
        superseded = self._readers.get(pair)
        if superseded is not None:
            superseded.reschedule(asyncio.get_running_loop().time() + SUPERSEDED_GRACE)
        try:
            async with asyncio.timeout(None) as deadline:
                self._readers[pair] = deadline
                while True:
                    await self._on_tuple(hello, decode_tuple(*await read_frame(stream)))
        except TimeoutError:
            return
        finally:
            if self._readers.get(pair) is deadline:
                del self._readers[pair]
