"""The agent's control channel: what is no request is rejected, and the channel lives on."""

import asyncio

from node_agent.agent.control import AnyCommand, AskStatus, Report, Request, State, Stop
from node_agent.agent.control_lines import LONGEST_LINE, encode, serve


class Written:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)

    async def drain(self) -> None:
        pass


async def served(*lines: bytes, limit: int = LONGEST_LINE) -> tuple[str, list[bytes]]:
    reader = asyncio.StreamReader(limit=limit)
    reader.feed_data(b"".join(lines))
    reader.feed_eof()
    writer = Written()

    async def handle(request: Request[AnyCommand]) -> Report:
        return Report(request.id, State.RUNNING, True, 0)

    def reject(error: str) -> Report:
        return Report(0, State.RUNNING, True, 0, error=error)

    ended = await serve(reader, writer, handle, reject)  # type: ignore[arg-type]
    return ended, writer.lines


def test_nonsense_is_rejected_and_the_next_request_obeyed() -> None:
    deep = b'{"do": {"do": "status", "more": ' + b"[" * 100_000 + b"}\n"
    lines = (b"nonsense\n", b"\xff\n", b'{"do": {"do": "status"}, "id": ' + b"9" * 5000 + b"}\n", deep)
    ended, answers = asyncio.run(
        served(*lines, encode(Request(AskStatus(), 7)), encode(Request(Stop("enough"))))
    )
    assert ended == "enough"
    assert len(answers) == 5
    assert all(b"not a request" in answer for answer in answers[:4]) and b'"id":7' in answers[4]


def test_a_line_without_end_ends_the_channel() -> None:
    ended, _ = asyncio.run(served(b"x" * 1000, limit=100))
    assert ended.startswith("control lost")
