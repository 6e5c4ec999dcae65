"""Does the same on many nodes, a limited number at once; returns each node's result or failure."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from orchestrator.errors import RoveError
from orchestrator.ssh.errors import NodeFailed

AT_ONCE = 16

N = TypeVar("N")
T = TypeVar("T")


async def on_all(
    nodes: Mapping[str, N], act: Callable[[N], Awaitable[T]], at_once: int = AT_ONCE
) -> dict[str, T | RoveError]:
    """Returns results by node, in the given order. ``act`` limits its own
    time; whatever it raises is that node's failure."""
    turns = asyncio.Semaphore(at_once)

    async def outcome(name: str, node: N) -> T | RoveError:
        async with turns:
            try:
                return await act(node)
            except RoveError as error:
                return error
            except Exception as error:  # one node's failure must not end the work on the others
                failure = NodeFailed(name, f"{type(error).__name__}: {error}")
                failure.__cause__ = error
                return failure

    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(outcome(name, node)) for name, node in nodes.items()}
    return {name: task.result() for name, task in tasks.items()}
