"""Asks nodes for their time: several times before and after a run, and every few seconds in between."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from node_agent.agent.control import Report
from orchestrator.clocks.book import ClockBook, When
from orchestrator.clocks.offsets import Exchange, Offset, estimate
from orchestrator.errors import RoveError

BURST = 8
"""Exchanges of one measurement; the quickest counts."""
PERIOD_S = 10.0
TIMEOUT_S = 2.0
AT_ONCE = 8
"""Nodes that are asked at the same time: answers that queue here would look like long delays."""

Ask = Callable[[], Awaitable[Report]]
"""Asks for the time once; may raise RoveError, OSError or TimeoutError if there is no answer."""


class NoAnswer(RoveError):
    """A node did not report its time."""


async def measure(
    ask: Ask, count: int = BURST, timeout: float = TIMEOUT_S, now_ns: Callable[[], int] = time.time_ns
) -> Offset:
    """Makes one burst of exchanges, each limited to ``timeout`` seconds; raises NoAnswer.

    Answers from before the connection failed still count.
    """
    exchanges = []
    reason = "its answers came before they were asked for"
    for _ in range(count):
        sent_ns = now_ns()
        try:
            async with asyncio.timeout(timeout):
                report = await ask()
        except TimeoutError:
            reason = f"no answer within {timeout:g} s"
            break
        except (RoveError, OSError) as error:
            reason = str(error)
            break
        exchanges.append(Exchange(sent_ns, report.now_ns, now_ns()))
    try:
        return estimate(exchanges)
    except ValueError:
        raise NoAnswer(reason) from None


class ClockWatch:
    """Fills ``book`` with measurements. Call ``before``, ``start``, ``after`` in this order; ``close`` at any
    point, also repeatedly. A node that does not answer is noted and never delays the others."""

    def __init__(
        self,
        book: ClockBook,
        asks: Mapping[str, Ask],
        period: float = PERIOD_S,
        timeout: float = TIMEOUT_S,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """``asks``: how to ask each node; read each time, so that nodes may be added and removed."""
        self._book = book
        self._asks = asks
        self._period = period
        self._timeout = timeout
        self._now_ns = now_ns
        self._task: asyncio.Task[None] | None = None

    async def before(self) -> None:
        await self._measure(When.BEFORE)

    def start(self) -> None:
        """Measures every ``period`` seconds from now on, until ``after`` or ``close``."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_measuring())

    async def after(self) -> None:
        await self.close()
        await self._measure(When.AFTER)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    async def _keep_measuring(self) -> None:
        while True:
            await asyncio.sleep(self._period)
            await self._measure(When.DURING)

    async def _measure(self, when: When) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(node: str, ask: Ask) -> None:
            async with turns:
                try:
                    self._book.add(node, await measure(ask, BURST, self._timeout, self._now_ns), when)
                except NoAnswer as error:
                    self._book.miss(node, when, str(error))

        async with asyncio.TaskGroup() as group:
            for node, ask in self._asks.items():
                group.create_task(one(node, ask))
