"""The same on many nodes, a bounded number at once: each node's result or failure, whatever befell others."""

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
    """By node, in the order given. ``act`` bounds its own time; whatever it raises is that node's failure."""
    turns = asyncio.Semaphore(at_once)

    async def outcome(name: str, node: N) -> T | RoveError:
        async with turns:
            try:
                return await act(node)
            except RoveError as error:
                return error
            except Exception as error:  # what one node says must not end the work on the others
                failure = NodeFailed(name, f"{type(error).__name__}: {error}")
                failure.__cause__ = error
                return failure

    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(outcome(name, node)) for name, node in nodes.items()}
    return {name: task.result() for name, task in tasks.items()}
