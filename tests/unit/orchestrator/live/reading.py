"""Reads a run as it is watched, in pieces of any size."""

import json
from collections.abc import Iterable
from itertools import chain, repeat

from orchestrator.live.run import LiveRun
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change

MOST_POLLS = 100_000


def read(directory: RunDirectory, sizes: Iterable[int] = ()) -> list[Change]:
    """Polls to the end: with each of ``sizes`` in turn, and then with the last of them."""
    sizes = list(sizes) or [1 << 22]
    live = LiveRun(directory)
    found: list[Change] = []
    try:
        for _, size in zip(range(MOST_POLLS), chain(sizes, repeat(sizes[-1])), strict=False):
            found += live.poll(size)
            if live.ended:
                return found
    finally:
        live.close()
    raise AssertionError("it does not end")


def of(changes: Iterable[Change], channel: str, key: str | None = None) -> list[Change]:
    return [c for c in changes if c.channel == channel and key in (None, c.key)]


def cut_off(run: RunDirectory) -> None:
    """Makes the run what it is when its process was killed: no verdict, a journal without an end."""
    events = [json.loads(line) for line in run.events.read_text().splitlines()]
    begun = next(at for at, e in enumerate(events) if e.get("phase") == "measure")
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events[: begun + 1]))
    run.verdict.unlink()
    run.manifest.unlink()
    run.journal.write_text(run.journal.read_text().splitlines(keepends=True)[0])
