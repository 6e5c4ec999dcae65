"""Greetings of strangers and of peers, at both ends of a connection that is not open yet."""

import asyncio
import random
from pathlib import Path

from benchmarks.attacks.memory_port import MemoryPort, MemoryStream
from benchmarks.attacks.mutation import changed_bytes, changed_message, deep, encoded
from benchmarks.attacks.speaking import ID_SIZE, Refused, Speaker, greeting, hello_body, welcome_body
from benchmarks.attacks.worlds import MALLORY, NODES, PAIR, VICTIM, victim_agent, victim_connection
from node_agent.ports import Address, PortError
from node_agent.transport.authentication import Seal
from node_agent.transport.errors import FrameError

NONCE = bytes(16)
_ROUNDS = 12


class Greetings:
    """Somebody connects to a whole agent, sends ``message`` and hangs up."""

    def __init__(self, directory: Path) -> None:
        self._runner = asyncio.Runner()
        self._world = self._runner.run(victim_agent("best_effort"))
        self._speakers = (
            Speaker(MALLORY, NODES),
            Speaker(MALLORY, NODES, run="another run"),
            Speaker(MALLORY, NODES, secret=bytes(32)),
        )
        self._sound = tuple(each.hello(VICTIM, PAIR, NONCE) for each in self._speakers)

    def draw(self, rng: random.Random) -> bytes:
        choice = rng.random()
        if choice < 0.3:
            return changed_bytes(self._sound, rng)
        if choice < 0.4:
            body = encoded(
                ["hello", 4, "", "", deep(rng.choice((10, 100, 900, 1000)), "msgpack", rng)], "msgpack"
            )
            return greeting(
                rng.choice((bytes(ID_SIZE), self._sound[0][2 : 2 + ID_SIZE])), body, NONCE, Seal(NONCE)
            )
        if choice < 0.45:
            return rng.randbytes(rng.choice((0, 1, 3, 4, 20, 42, 100, 2000)))
        body = changed_message((hello_body(PAIR),), "msgpack", rng)
        return rng.choice(self._speakers).hello_of(VICTIM, body, NONCE)

    def feed(self, message: bytes) -> None:
        self._runner.run(self._say(message))
        self._world.check()

    async def _say(self, message: bytes) -> None:
        stream = self._world.connect()
        stream.put(message)
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        stream.close()
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    def close(self) -> None:
        self._runner.run(self._world.close())
        self._runner.close()


class Welcomes:
    """The agent connects to somebody who answers with ``message``."""

    def __init__(self, directory: Path) -> None:
        self._runner = asyncio.Runner()
        self._mallory = Speaker(MALLORY, NODES)

    def draw(self, rng: random.Random) -> "tuple[bool, bytes]":
        """Returns whether it gets a genuine tag, and the body."""
        if rng.random() < 0.3:
            return False, rng.choice(
                (
                    rng.randbytes(rng.choice((3, 40, 1100))),
                    greeting(bytes(ID_SIZE), b"\x91" * 900, NONCE, Seal(NONCE)),
                )
            )
        return True, changed_message((welcome_body(),), "msgpack", rng)

    def feed(self, message: "tuple[bool, bytes]") -> None:
        self._runner.run(self._answer(*message))

    async def _answer(self, genuine: bool, body: bytes) -> None:
        failures: list[BaseException] = []
        answers: list[asyncio.Task[object]] = []

        def answer(to: Address, stream: MemoryStream) -> None:
            async def say() -> None:
                try:
                    if genuine:
                        await self._mallory.accept(stream, NONCE, body)
                    else:
                        stream.put(body)
                    for _ in range(_ROUNDS):
                        await asyncio.sleep(0)
                    stream.close()
                except (PortError, Refused):
                    pass

            answers.append(asyncio.create_task(say()))

        connection = victim_connection(MemoryPort("127.0.0.1", answer), failures.append)
        try:
            async with asyncio.timeout(1.0):
                await connection.ready()
        except (PortError, FrameError, TimeoutError):
            pass
        finally:
            await connection.close()
            await asyncio.gather(*answers)
        if failures:
            raise failures[0]

    def close(self) -> None:
        self._runner.close()
