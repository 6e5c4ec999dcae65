"""What is needed to understand a run later and to repeat it: versions, host, seeds, plans, checksums."""

import hashlib
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from node_agent.telemetry.segment_files import open_regular

DISTRIBUTION = "rove-testbed"
APPS = "apps"
ROUTING = "routing"
"""The key of the routing protocol's name."""
SETTLED = "settled_s"
"""The key of how long costs took to settle before the query began; None: nobody waited, or they did not."""
MOVING_FROM = "moving_from_ns"
"""The key of the moment at which the flow starts and nodes leave the positions of time 0."""
CHECKOUT = "checkout"
"""The key of the commit that Rove ran from."""
FIRST = "query"
"""The one application of runs that were recorded before there were several, and its kind."""


def versions() -> dict[str, str | None]:
    return {
        "rove": _version(DISTRIBUTION),
        "python": platform.python_version(),
        "pyspark": _version("pyspark"),
        "platform": platform.platform(),
    }


def host_facts() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }


def checksums(directory: Path) -> dict[str, str]:
    """SHA-256 of every telemetry segment, ground-truth and trace file, by path within the run directory."""
    files = (path for part in ("nodes", "radio", "mobility") for path in regular_files(directory / part))
    return {_text(path.relative_to(directory)): _sha256(path) for path in sorted(files)}


def regular_files(directory: Path) -> Iterator[Path]:
    """All below ``directory``. Links are not followed: they may lead out of the run, or nowhere."""
    for place, _, names in os.walk(directory):
        for name in names:
            path = Path(place, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


class RecordedApp(NamedTuple):
    """What a manifest keeps of one application: its kind, and the application's own document."""

    name: str
    kind: str
    document: Mapping[str, Any]


def apps_in(document: Any) -> dict[str, RecordedApp]:
    """The applications of a run, by name; none if it did not get so far as to be planned."""
    if not isinstance(document, Mapping):
        return {}
    apps = document.get(APPS)
    if isinstance(apps, Mapping):
        return {
            str(name): RecordedApp(str(name), str(app["kind"]), app)
            for name, app in apps.items()
            if isinstance(app, Mapping) and isinstance(app.get("kind"), str)
        }
    # Before there were applications, a run was one query.
    return {FIRST: RecordedApp(FIRST, FIRST, document)} if isinstance(document.get("plan"), Mapping) else {}


class _Times(msgspec.Struct):
    clock: str
    started: datetime
    finished: datetime
    measure_from_ns: int
    measure_until_ns: int


def span_ns(document: Any) -> tuple[int, int] | None:
    """The earliest and the latest that the run can have been: within its own length of the measured window.

    None where time is virtual, and while it is not known.
    """
    try:
        times = msgspec.convert(document, _Times)
        length = times.finished - times.started
    except (msgspec.ValidationError, TypeError):  # the latter of times of which one has no zone
        return None
    if times.clock != "real":
        return None
    length_ns = length // timedelta(microseconds=1) * 1000
    return times.measure_from_ns - length_ns, times.measure_until_ns + length_ns


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text(path: Path) -> str:
    """For a file that people read: a name that is no text is written with escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
