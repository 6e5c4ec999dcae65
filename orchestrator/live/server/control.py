"""Stops runs for browsers, where ``--control`` allows it: in order as the first Ctrl-C, or as `rove down`."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from orchestrator.errors import RoveError
from orchestrator.lifecycle import teardown
from orchestrator.lifecycle.teardown import State
from orchestrator.live.server.answers import Refusal
from orchestrator.runs import journal as journals
from orchestrator.runs import processes
from orchestrator.runs.run_directory import RunDirectory

NOT_ALLOWED = "this server only shows runs: start it with --control to stop them from here"


class Control:
    """One request at a time for each run, however many browsers ask."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self._busy: set[str] = set()
        self._asked: set[str] = set()

    async def stop(self, run: RunDirectory) -> dict[str, Any]:
        """Asks the run's process to stop in order. Not twice: the second time would tear it down at once."""
        if run.invocation in self._asked:
            raise Refusal(HTTPStatus.CONFLICT, "it was asked to stop already: down ends it at once")
        result = await self._once(run, lambda: {"run": run.id, "asked": _ask_to_stop(run)})
        if result["asked"]:
            self._asked.add(run.invocation)
        return result

    async def down(self, run: RunDirectory) -> dict[str, Any]:
        """Takes the run down as `rove down RUN` does; returns what was removed and what could not be."""
        return await self._once(
            run, lambda: {"run": run.id, "removed": [_take_down(each) for each in _all(run)]}
        )

    async def _once(self, run: RunDirectory, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if not self.allowed:
            raise Refusal(HTTPStatus.FORBIDDEN, NOT_ALLOWED)
        if run.invocation in self._busy:
            raise Refusal(HTTPStatus.CONFLICT, "somebody has just asked for that: wait")
        self._busy.add(run.invocation)
        try:
            return await asyncio.to_thread(act)
        except (OSError, RoveError) as error:
            reason = (error.strerror or "it failed") if isinstance(error, OSError) else str(error)
            raise Refusal(HTTPStatus.CONFLICT, f"this did not work: {reason}") from error
        finally:
            self._busy.discard(run.invocation)


def _ask_to_stop(run: RunDirectory) -> bool:
    """Returns False if the process that its journal names does not hold it.

    That of a sweep's member is the sweep's: the whole sweep stops, as it does at a Ctrl-C.
    """
    owner = journals.holder(run.journal)
    return owner is not None and processes.request_stop(owner)


def _all(run: RunDirectory) -> list[RunDirectory]:
    return [run, *run.members()] if run.is_sweep else [run]


def _take_down(run: RunDirectory) -> dict[str, Any]:
    stopped = teardown.state_of(run) is State.ALIVE and teardown.stop_orchestrator(run)
    removal = asdict(teardown.tear_down(run, stopped))
    # Paths of this machine are no browser's business; how many there were is.
    return {
        **removal,
        "paths": len(removal["paths"]),
        "left": len(removal["left"]),
        "kept": len(removal["kept"]),
    }
