"""Carries out a run's faults, in the run's own time, and writes each into the run's events."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol

from orchestrator.lifecycle.events import EventLog
from orchestrator.planning.faults import Step


class Stricken(Protocol):
    """The nodes that it happens to."""

    def now_ns(self) -> int: ...

    async def crash(self, node: str) -> None:
        """Kill the node's agent: it says nothing to anyone, and what it knew is lost."""
        ...

    async def restart(self, node: str) -> None:
        """Start the agent of a node anew whose agent was killed."""
        ...

    async def silence(self, nodes: Collection[str]) -> None:
        """The radios of these nodes, and of no others, neither send nor receive; returns when it is so."""
        ...


async def inflict(steps: Sequence[Step], warmup: float, on: Stricken, events: EventLog) -> None:
    """Begin with the warm-up; returns after the last step."""
    loop = asyncio.get_running_loop()
    measured_from = loop.time() + warmup
    silent: dict[str, None] = {}
    for step in steps:
        await asyncio.sleep(max(0.0, measured_from + step.at - loop.time()))
        match step.deed:
            case "crash":
                await on.crash(step.node)
            case "restart":
                await on.restart(step.node)
            case "silence":
                silent[step.node] = None
                await on.silence(tuple(silent))
            case "unsilence":
                del silent[step.node]
                await on.silence(tuple(silent))
        events.add("fault", deed=step.deed, node=step.node, t_ns=on.now_ns())
