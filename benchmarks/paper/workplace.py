"""Where runs are until they are counted: a folder of its own for each campaign, which it removes at its end.

A campaign that was killed cannot do that, and ``rove down`` does not look there: the next one takes down what
its runs left, and removes the folder.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from node_agent.telemetry.segment_files import open_regular
from orchestrator.lifecycle.teardown import tear_down
from orchestrator.runs.journal import try_lock
from orchestrator.runs.run_directory import all_runs

PREFIX = "rove-paper-"
LOCK = ".lock"
"""A file that is locked as long as the campaign lives."""


@contextmanager
def workplace() -> Iterator[Path]:
    remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        with (folder / f"{LOCK}.new").open("xb") as file:
            try_lock(file)
            Path(file.name).rename(folder / LOCK)  # nobody ever sees it unlocked
            yield folder


def remove_abandoned() -> None:
    """Removes the folders of this user's campaigns that are not alive. One without a lock is left alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            with open_regular(folder / LOCK) as file:
                if try_lock(file) and not any(tear_down(run).left for run in all_runs(folder)):
                    shutil.rmtree(folder)
