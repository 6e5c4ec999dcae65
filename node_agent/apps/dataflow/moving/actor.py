"""One role of a migration at work: takes messages one after the other, and does what its machine wants."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from node_agent.apps.dataflow.moving.post import Post
from node_agent.migration.live.messages import Effect, Message, Sent

MOST_WAITING = 256
"""Messages that wait for a role before it takes no more of other nodes."""

Step = Callable[[], Sequence[Effect]]


class Actor(ABC):
    def __init__(self, post: Post, operator: str, name: str) -> None:
        self.name = name
        self._post, self._subject = post, operator
        self._steps: deque[Step] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        post.attach(operator, name, self._take, self._put)

    @abstractmethod
    def receive(self, sender: str, message: Message) -> Sequence[Effect]: ...

    @abstractmethod
    async def carry_out(self, effect: Effect) -> bool:
        """Does what is wanted besides sending. Returns False if what follows must not be done."""
        ...

    def do(self, step: Step) -> None:
        """Has the machine make a step after those before it."""
        self._steps.append(step)
        self._news.set()

    async def run(self) -> None:
        while True:
            while self._steps:
                step = self._steps.popleft()
                self._room.set()
                for effect in step():
                    if isinstance(effect, Sent):
                        self._post.send(self._subject, self.name, effect.to, effect.message)
                    elif not await self.carry_out(effect):
                        break
            self._news.clear()
            await self._news.wait()

    async def _take(self, sender: str, message: Message) -> None:
        while len(self._steps) >= MOST_WAITING:
            self._room.clear()
            await self._room.wait()
        self._put(sender, message)

    def _put(self, sender: str, message: Message) -> None:
        self.do(partial(self.receive, sender, message))
