"""Same seed, same run, bit for bit: also in another process, where strings hash differently."""

import os
import subprocess
import sys

from node_agent.ports import Address, ConnectionLost, Stream
from tests.unit.worlds import VirtualWorld

NODES = 12


def scenario(seed: int) -> list[str]:
    """Nodes that wander, call each other at random and lose each other; every event with its time."""
    world = VirtualWorld({f"n{index}": (index * 30.0, 0.0) for index in range(NODES)}, seed)
    trace: list[str] = []

    def note(node: str, what: str) -> None:
        trace.append(f"{world.loop.now_ns()} {node} {what}")

    async def serve(node: str) -> None:
        async def take(stream: Stream) -> None:
            while True:
                size = int.from_bytes(await stream.read_exactly(4))
                await stream.read_exactly(size)
                note(node, f"got {size} from {stream.peer}")

        await world.ports[node].listen(7, take)
        socket = await world.ports[node].datagrams(9, lambda data, sender: note(node, f"heard {sender}"))
        while True:
            await world.ports[node].sleep(world.ports[node].random.uniform(0.3, 0.6))
            socket.send(b"hello", Address("255.255.255.255", 9))

    async def call(node: str) -> None:
        port = world.ports[node]
        while True:
            await port.sleep(port.random.random())
            peer = Address(f"n{port.random.randrange(NODES)}", 7)
            try:
                stream = await port.connect(peer, 1.0)
                for _ in range(3):
                    size = port.random.randrange(20_000)
                    await stream.write(size.to_bytes(4) + bytes(size))
                stream.close()
            except ConnectionLost as lost:
                note(node, f"lost {peer}: {lost}")
            except Exception as error:
                note(node, f"{type(error).__name__} {peer}")

    tasks = [world.loop.create_task(work(node)) for node in world.ports for work in (serve, call)]
    for step in range(1, 41):
        world.loop.run_until_ns(step * 250_000_000)
        places = {node: world.ports[node].random.uniform(0, 400) for node in world.ports}
        world.radio.move({node: (x, 0.0) for node, x in places.items()})
    for task in tasks:
        task.cancel()
    trace += [f"{node} {host.counters}" for node, host in world.hosts.items()]
    world.close()
    return trace


def run_in_process(hash_seed: str) -> bytes:
    code = f"from {__name__} import scenario; print(*scenario(7), sep='\\n')"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, timeout=50
    )
    return done.stdout


def test_two_processes_give_the_same_bytes() -> None:
    first, second = run_in_process("1"), run_in_process("2")
    assert first == second
    assert first.count(b"got") > 100
    assert first.count(b"heard") > 100


def test_another_seed_gives_another_run() -> None:
    assert scenario(1) != scenario(2)
