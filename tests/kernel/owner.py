"""An orchestrator for tests to kill: brings a network up, starts programs on it, and again, until it dies."""

import asyncio
import os
import sys
from pathlib import Path

from orchestrator.backends.netns import names, network
from orchestrator.backends.netns.forkclient import ForkServer, Launch
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.services.program import Argv


# The second program forgets its mark and its parent: only the control group still knows whose it is.
def programs(seconds: str) -> tuple[Argv, ...]:
    return (Argv(("sleep", seconds)), Argv(("sh", "-c", f"env -i setsid sleep {seconds} & wait")))


async def main(mark: Mark, nodes: int, rounds: int, seconds: str) -> None:
    layout = numbered([f"n{number:02d}" for number in range(1, nodes + 1)])
    print("born", flush=True)
    for _ in range(rounds):
        ends = network.up(layout, mark)
        async with await ForkServer.start(mark) as server:
            for node in layout.nodes:
                for program in programs(seconds):
                    await server.spawn(Launch(program, names.HOST_NAMES / mark.namespace(node.name)))
            print("up", flush=True)
            await asyncio.sleep(0.1 if rounds > 1 else 60)
        for descriptor in ends.values():
            os.close(descriptor)
        network.down(mark)


if __name__ == "__main__":
    asyncio.run(main(Mark(sys.argv[1], Path(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
