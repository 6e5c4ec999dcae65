"""Sends requests to a server as they are, and says what came back and whether it came at all."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from benchmarks.serving.requests import Case, Manner

ANSWER_S = 20.0
CLOSED_S = 25.0
"""The server gives a request 10 s to arrive."""
MOST_READ = 4 * 1024 * 1024
WHOLE_AT_ONCE = 24
HALF_AT_ONCE = 80
_STREAM = b"text/event-stream"
_STATUS = b"HTTP/1."
_DELIBERATE = (501, 503, 505)
"""Statuses by which the server says what it does not have, or has too much of."""


@dataclass
class Outcomes:
    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    hangs: int = 0
    server_errors: int = 0
    files_outside: int = 0
    without_policy: int = 0
    examples: list[str] = field(default_factory=list)

    def note(self, what: str, case: Case, answer: bytes = b"") -> None:
        if len(self.examples) < 20:
            self.examples.append(f"{what}: {case.manner} {case.data[:200]!r} -> {answer[:200]!r}")


class Client:
    """``canaries``: bytes of files that no answer may hold."""

    def __init__(self, port: int, canaries: Sequence[bytes]) -> None:
        self._port = port
        self._canaries = canaries
        self.outcomes = Outcomes()
        self._turns = {
            Manner.WHOLE: asyncio.Semaphore(WHOLE_AT_ONCE),
            Manner.PIPELINED: asyncio.Semaphore(WHOLE_AT_ONCE),
            Manner.HALF_OPEN: asyncio.Semaphore(HALF_AT_ONCE),
        }

    async def send_all(self, cases: Iterable[Case]) -> None:
        doing: set[asyncio.Task[None]] = set()
        for case in cases:
            turn = self._turns[case.manner]
            await turn.acquire()
            task = asyncio.create_task(self._send(case))
            doing.add(task)
            task.add_done_callback(doing.discard)
            task.add_done_callback(partial(_release, turn))
        if doing:
            await asyncio.wait(doing)

    async def _send(self, case: Case) -> None:
        outcomes = self.outcomes
        outcomes.requests += 1
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except (OSError, TimeoutError):
            outcomes.hangs += 1
            outcomes.note("not accepted", case)
            return
        answer = bytearray()
        try:
            limit = CLOSED_S if case.manner is Manner.HALF_OPEN else ANSWER_S
            async with asyncio.timeout(limit):
                writer.write(case.data)
                with suppress(OSError):  # it may refuse before it has read all
                    await writer.drain()
                if case.manner is Manner.PIPELINED and writer.can_write_eof():
                    with suppress(OSError):
                        writer.write_eof()
                await _read(reader, answer)
        except TimeoutError:
            outcomes.hangs += 1
            outcomes.note("no end", case, bytes(answer))
        except OSError:
            pass  # closed at once: so may whoever sends no HTTP be answered
        finally:
            writer.close()
        self._judge(case, bytes(answer))

    def _judge(self, case: Case, answer: bytes) -> None:
        outcomes = self.outcomes
        if any(canary in answer for canary in self._canaries):
            outcomes.files_outside += 1
            outcomes.note("a file from outside", case, answer)
        for head in answer.split(_STATUS)[1:]:
            status = head[2:5]
            if not status.isdigit():
                continue
            outcomes.statuses[int(status)] += 1
            if int(status) >= 500 and int(status) not in _DELIBERATE:
                outcomes.server_errors += 1
                outcomes.note("error", case, answer)
            if int(status) != 100 and b"content-security-policy:" not in head.split(b"\r\n\r\n")[0].lower():
                outcomes.without_policy += 1
                outcomes.note("no policy", case, answer)


def _release(turn: asyncio.Semaphore, _: object) -> None:
    turn.release()


async def _read(reader: asyncio.StreamReader, into: bytearray) -> None:
    """Reads until the server closes; a stream only until it has begun."""
    while len(into) < MOST_READ and (data := await reader.read(65536)):
        into += data
        if _STREAM in into and b"\r\n\r\n" in into:
            return
