"""Writes a run as one HTML file that plays it: page, styles and records inside, no network needed.

Records and pictures go in as base64, so that nothing that a node or a user wrote is part of the markup; only
the run's name is, escaped, in the title.
"""

import base64
import gzip
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from orchestrator.errors import RoveError
from orchestrator.live.inlining import standalone
from orchestrator.live.run import LiveRun
from orchestrator.live.server.assets import page_files
from orchestrator.live.server.pictures import kept_numbers, picture
from orchestrator.live.thinning import Thinner
from orchestrator.runs.files import write_atomic
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change

MOST_BYTES = 30 * 1024 * 1024
MOST_PICTURES = 40
MOST_PICTURE_BYTES = 6 * 1024 * 1024
PERIODS_S = (0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
"""How far apart changes of what moves are: the first with which the file is small enough is taken."""
_encode = msgspec.json.Encoder(enc_hook=str).encode


class CannotReplay(RoveError):
    """The run has no records, or too many."""


class Written(NamedTuple):
    """``period``: what moves is in the file this many seconds apart; 0: all of it is."""

    path: Path
    size: int
    changes: int
    pictures: int
    period: float


def write_replay(run: RunDirectory, output: Path, progress: Callable[[str, float], None]) -> Written:
    """Raises CannotReplay."""
    progress("reading the run", 0.0)
    head, now, changes = _read(run, progress)
    if not changes:
        raise CannotReplay(f"run {run.id} has no records that could be played")
    progress("choosing pictures", 0.7)
    pictures, shown = _pictures(run, changes)
    progress("writing", 0.8)
    page = page_files()
    title = f"{run.experiment} {run.id} – Rove"
    fixed = {"rove-head": _packed(head), "rove-pictures": _packed(pictures)}
    for period in PERIODS_S:
        kept = changes if period == 0 else _thinned(changes, period)
        data = {**fixed, "rove-changes": _packed({"now": now, "changes": kept})}
        file = standalone(page, title, data)
        if len(file) <= MOST_BYTES:
            write_atomic(output, file)
            return Written(output, len(file), len(kept), shown, period)
    raise CannotReplay(f"run {run.id} is too long for one file of {MOST_BYTES >> 20} MB")


def _read(
    run: RunDirectory, progress: Callable[[str, float], None]
) -> tuple[dict[str, Any], float, list[Change]]:
    live = LiveRun(run)
    try:
        changes: list[Change] = []
        while True:
            changes += live.poll()
            if live.ended or live.caught_up:
                break
            progress("reading the run", 0.1)
        changes.sort(key=lambda change: change.t)
        return live.head, max(live.now, changes[-1].t if changes else 0.0), changes
    finally:
        live.close()


def _thinned(changes: Sequence[Change], period: float) -> list[Change]:
    thinner = Thinner(period)
    return sorted([*thinner.thin(changes), *thinner.rest()], key=lambda change: change.t)


def _pictures(run: RunDirectory, changes: Iterable[Change]) -> tuple[dict[str, Any], int]:
    """Returns pictures of each sink, evenly over those that were kept, and how many."""
    sinks = dict.fromkeys((change.app, change.key) for change in changes if change.channel == "picture")
    found: dict[str, Any] = {}
    count = size = 0
    for app, sink in sinks:
        numbers = kept_numbers(run, app, sink)
        shown: list[tuple[int, str, str]] = []
        for number in [*_evenly(numbers, MOST_PICTURES // max(1, len(sinks))), None]:
            one = picture(run, app, sink, number)
            if one is None or size + len(one.data) > MOST_PICTURE_BYTES:
                continue
            size += len(one.data)
            frame = one.frame if one.frame is not None else _last_frame(changes, app, sink)
            shown.append((frame, "image/jpeg", base64.b64encode(one.data).decode()))
            count += 1
        found.setdefault(app, {})[sink] = sorted(shown)
    return found, count


def _last_frame(changes: Iterable[Change], app: str, sink: str) -> int:
    """Returns the number of the newest picture, which is not in its name."""
    frames = [
        change.value.get("frame")
        for change in changes
        if (change.app, change.channel, change.key) == (app, "picture", sink)
        and isinstance(change.value, dict)
    ]
    return max((frame for frame in frames if isinstance(frame, int)), default=0)


def _evenly(numbers: Sequence[int], most: int) -> list[int]:
    if len(numbers) <= most:
        return list(numbers)
    step = (len(numbers) - 1) / max(1, most - 1)
    return [numbers[round(index * step)] for index in range(most)]


def _packed(value: Any) -> str:
    """Compressed JSON as base64, as the page unpacks it."""
    return base64.b64encode(gzip.compress(_encode(value), mtime=0)).decode()
