"""Pictures that sinks keep: the newest, or the one that was shown at a past moment.

Where a picture is follows from the run's plan and a fixed layout; a request chooses an application, a replica
and a number, and each is looked up. Files may be a node's: no link is followed, and only a JPEG is sent.
"""

import re
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from node_agent.apps.dataflow.faces.params import folder_of
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.live.facts import is_node_name
from orchestrator.live.inside import names_inside, open_inside
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import apps_in
from orchestrator.runs.run_directory import RunDirectory

LATEST = "latest.jpg"
MOST_BYTES = 4 * 1024 * 1024
MOST_LISTED = 100_000
JPEG = "image/jpeg"
_MAGIC = b"\xff\xd8\xff"
_END = b"\xff\xd9"
_NUMBERED = re.compile(r"[0-9]{8,12}\.jpg")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Picture(NamedTuple):
    """``frame`` is None for the newest, whose number is not in its name."""

    data: bytes
    frame: int | None


def sinks(run: RunDirectory) -> dict[tuple[str, str], str]:
    """Returns the node of each replica of the run's plans, by application and replica."""
    found = {}
    for name, app in apps_in(read_object(run.manifest)).items():
        plan = deployment_in(app.document)
        for replica in plan.replicas if plan is not None else ():
            if _NAME.fullmatch(replica.operator) and is_node_name(replica.node):
                found[name, f"{replica.operator}/{replica.index}"] = replica.node
    return found


def picture(run: RunDirectory, app: str, replica: str, frame: int | None) -> Picture | None:
    """Returns the newest, or the one kept last that is not later than ``frame``; blocks.

    While a run of remote nodes goes on, its newest picture is in the mirror.
    """
    node = sinks(run).get((app, replica))
    if node is None:
        return None
    folder = Path("frames") / folder_of(app, replica)
    kept = run.nodes / node / folder
    if frame is not None and (number := _nearest(run, kept, frame)) is not None:
        data = _jpeg(run, kept / f"{number:08d}.jpg")
        return Picture(data, number) if data else None
    mirrored = run.temporary / "live" / node / folder
    for place in (kept, mirrored):
        if data := _jpeg(run, place / LATEST):
            return Picture(data, None)
    return None


def kept_numbers(run: RunDirectory, app: str, replica: str) -> list[int]:
    """Returns the numbers of the frames that are kept, in order."""
    node = sinks(run).get((app, replica))
    if node is None:
        return []
    return _numbers(run, run.nodes / node / "frames" / folder_of(app, replica))


def _nearest(run: RunDirectory, folder: Path, frame: int) -> int | None:
    numbers = _numbers(run, folder)
    earlier = [number for number in numbers if number <= frame]
    return earlier[-1] if earlier else next(iter(numbers), None)


def _numbers(run: RunDirectory, folder: Path) -> list[int]:
    names = names_inside(run.path, folder, MOST_LISTED)
    return sorted(int(name[:-4]) for name in names if _NUMBERED.fullmatch(name))


def _jpeg(run: RunDirectory, path: Path) -> bytes | None:
    """Returns the content of a file of the run if it is a picture."""
    descriptor = open_inside(run.path, path)
    if descriptor is None:
        return None
    try:
        with FileIO(descriptor) as file:
            data = file.read(MOST_BYTES + 1)  # a regular file gives all of it at once
    except OSError:
        return None
    whole = len(data) <= MOST_BYTES and data.startswith(_MAGIC) and data.rstrip(b"\x00").endswith(_END)
    return data if whole else None
