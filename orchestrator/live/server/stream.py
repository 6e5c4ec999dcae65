"""Sends a run's changes to one browser as server-sent events: what was, then what comes."""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from aiohttp import web

from orchestrator.live.server.answers import SAFETY, Refusal
from orchestrator.live.server.blocks import GZIP_HEAD, Block, pack
from orchestrator.live.server.feed import Feed

BEAT_S = 10.0
_EVENTS = "text/event-stream; charset=utf-8"
_LONGEST_NUMBER = 20


def cursor_in(stated: str) -> int | None:
    """Raises Refusal. Empty: from the beginning."""
    if not stated:
        return None
    if not stated.isascii() or not stated.isdigit() or len(stated) > _LONGEST_NUMBER:
        raise Refusal(HTTPStatus.BAD_REQUEST, "after must be a cursor of an earlier message")
    return int(stated)


async def stream(
    request: web.BaseRequest, feed: Feed, cursor: int | None, compressed: bool, ends: Callable[[], bool]
) -> web.StreamResponse:
    """``ends``: does the server end?"""
    count = 0 if cursor is None else feed.count_of(cursor)
    if count is None:
        raise Refusal(HTTPStatus.GONE, "the server has begun anew: load the page again")
    headers = {**SAFETY, "Content-Type": _EVENTS, "Vary": "Accept-Encoding", "X-Accel-Buffering": "no"}
    answer = web.StreamResponse(headers=headers | ({"Content-Encoding": "gzip"} if compressed else {}))
    await answer.prepare(request)
    if request.method == "HEAD":
        return answer
    with suppress(ConnectionError):  # the browser has left
        await _send(_Writer(answer, compressed), feed, count, ends)
    return answer


async def _send(writer: "_Writer", feed: Feed, count: int, ends: Callable[[], bool]) -> None:
    """Sends everything after the first ``count`` changes, until the server ends or the run cannot be read."""
    await writer.begin()
    told_end = False
    beat_due = True
    while not ends() and not feed.failure:
        for begin, block in feed.after(count):
            await writer.send(block, begin)
            count, beat_due = block.end, False
            if ends():
                break
        if count < feed.count:
            continue
        if beat_due or (feed.ended and not told_end):
            beat_due, told_end = False, feed.ended
            await writer.send(feed.beat(count), count)
            continue
        beat_due = not await feed.news(BEAT_S)


class _Writer:
    """The gzip stream has no end: it goes on until one side closes the connection."""

    def __init__(self, answer: web.StreamResponse, compressed: bool) -> None:
        self._answer = answer
        self._compressed = compressed

    async def begin(self) -> None:
        if self._compressed:
            await self._answer.write(GZIP_HEAD)

    async def send(self, block: Block, begin: int) -> None:
        """Sends what ``block`` has after the first ``begin`` changes."""
        if begin > block.first:
            rest = block.rest_after(begin)
            await self._answer.write(pack(rest) if self._compressed else rest)
        else:
            await self._answer.write(block.packed() if self._compressed else block.raw())
