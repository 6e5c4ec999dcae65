"""A server of the page within a test, and requests to it as a browser or anybody else sends them."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession, DummyCookieJar

from orchestrator.live.server.process import Address, Settings, serving
from orchestrator.runs.timeline import Change

Act = Callable[["Browser"], Awaitable[None]]


class Browser:
    """Asks one server, with the headers that a page of its own would send."""

    def __init__(self, address: Address, session: ClientSession) -> None:
        self.address = address
        self.host = f"127.0.0.1:{address.port}"
        self._session = session

    @asynccontextmanager
    async def asking(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: bytes | None = None,
    ) -> AsyncIterator[ClientResponse]:
        own = {"Host": self.host, "Sec-Fetch-Site": "same-origin"}
        if method == "POST":
            own |= {"Origin": f"http://{self.host}", "Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.address.port}{path}"
        async with self._session.request(
            method, url, headers={**own, **(headers or {})}, data=body
        ) as answer:
            yield answer

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        """Returns the status and the document, or the bytes if it is none."""
        async with self.asking(path, **options) as answer:
            data = await answer.read()
            return answer.status, json.loads(data) if "json" in answer.content_type else data

    async def raw(self, data: bytes, seconds: float = 15.0) -> bytes:
        """Sends bytes as they are; returns what came until the server closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.address.port)
        try:
            writer.write(data)
            async with asyncio.timeout(seconds):
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    async def stream(self, path: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yields the messages of a stream."""
        async with self.asking(path) as answer:
            assert answer.status == 200, await answer.text()
            rest = b""
            async for part in answer.content.iter_any():
                *events, rest = (rest + part).split(b"\n\n")
                for event in events:
                    yield json.loads(event.partition(b"data: ")[2])

    async def changes(self, path: str) -> AsyncGenerator[Change, None]:
        async with aclosing(self.stream(path)) as messages:
            async for message in messages:
                for change in message["changes"]:
                    yield Change(*change)

    async def messages(self, path: str, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Reads messages of a stream until one fits."""
        found: list[dict[str, Any]] = []
        async with aclosing(self.stream(path)) as messages:
            async for message in messages:
                found.append(message)
                if until(message):
                    break
        return found


def browse(settings: Settings | Path, act: Act) -> None:
    """Serves on a free port while ``act`` goes on. A path: all runs under it."""
    given = Settings(root=settings) if isinstance(settings, Path) else settings

    async def use() -> None:
        async with (
            serving(replace(given, port=0)) as (address, _),
            ClientSession(cookie_jar=DummyCookieJar()) as session,
        ):
            await act(Browser(address, session))

    asyncio.run(use())
