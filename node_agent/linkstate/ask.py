"""Asks a daemon one question over TCP and reads its whole answer: bounded in time and size, typed errors."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from node_agent.linkstate.reader import Garbage, Refused, Rejected, TimedOut

TIME_LIMIT_S = 0.9  # a reader, with several questions and parsing, has one second in all
SIZE_LIMIT = 8 * 1024 * 1024
_CHUNK = 64 * 1024


async def ask(host: str, port: int, question: bytes) -> bytes:
    """Returns what the daemon answers until it closes the connection."""
    peer = f"{host}:{port}"
    try:
        async with asyncio.timeout(TIME_LIMIT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(question)  # at once: olsrd waits only 20 ms for it
                return await _answer(reader, peer)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise TimedOut(f"{peer} did not answer in full within {TIME_LIMIT_S:g} s") from None
    except (OSError, ValueError, OverflowError) as error:  # ValueError, OverflowError: not a host or port
        raise Refused(f"cannot ask {peer}: {error}") from error


async def _answer(reader: asyncio.StreamReader, peer: str) -> bytes:
    answer = bytearray()
    while chunk := await reader.read(_CHUNK):
        answer += chunk
        if len(answer) > SIZE_LIMIT:
            raise Garbage(f"the answer of {peer} is longer than {SIZE_LIMIT} bytes")
    if not answer:
        raise Garbage(f"{peer} closed the connection without an answer")
    return bytes(answer)


async def get(host: str, port: int, path: str) -> bytes:
    """Returns the body that a daemon with basic HTTP sends for ``path``. Raises Rejected for any status but
    200.
    """
    return body(await ask(host, port, f"GET {path} HTTP/1.0\r\n\r\n".encode()), f"{host}:{port}{path}")


def body(answer: bytes, asked: str) -> bytes:
    """Returns the answer without HTTP headers; all of it if it has none, because daemons can leave them
    out.
    """
    if not answer.startswith(b"HTTP/"):
        return answer
    crlf, lf = answer.find(b"\r\n\r\n"), answer.find(b"\n\n")  # olsrd 0.6 ends its lines with LF only
    ends = [end for end in ((crlf, 4), (lf, 2)) if end[0] >= 0]
    if not ends:
        raise Garbage(f"{asked}: the answer ends within its headers")
    end, width = min(ends)
    status, *headers = answer[:end].decode("latin-1").splitlines()
    if status.split()[1:2] != ["200"]:
        raise Rejected(f"{asked}: {status[:80]}")
    content = answer[end + width :]
    for header in headers:
        name, _, value = header.partition(":")
        if name.strip().lower() == "content-length":
            _check_length(content, value.strip(), asked)
    return content


def _check_length(content: bytes, announced: str, asked: str) -> None:
    if not (announced.isascii() and announced.isdigit()):
        raise Garbage(f"{asked}: the length of the answer is said to be {announced[:40]!r}")
    if len(content) < int(announced[:20]):
        raise Garbage(f"{asked}: {len(content)} of {announced[:20]} bytes came")


async def in_turn(*questions: Coroutine[Any, Any, bytes]) -> list[bytes]:
    """Asks one question after the other and returns all answers. olsrd lets only one more caller wait; others
    try again after a second.

    Raises the first error, and asks no more.
    """
    try:
        async with asyncio.timeout(TIME_LIMIT_S):
            return [await question for question in questions]
    except TimeoutError:
        raise TimedOut(f"{len(questions)} questions were not answered within {TIME_LIMIT_S:g} s") from None
    finally:
        for question in questions:
            question.close()
