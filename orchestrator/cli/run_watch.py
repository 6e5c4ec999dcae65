"""Follows a run from within `rove run`, in a thread that takes only a few percent of a processor."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.live.run import LiveRun
from orchestrator.live.summary import Summary, Watch

PERIOD_S = 0.25
MOST_SHARE = 0.04
"""Of a processor. If there is more to read than that allows, the display lags behind the run."""
MOST_BYTES = 128 * 1024
END_S = 2.0


class RunWatch:
    """``summary`` is the latest of the run that ``follow`` named last; None before there is anything to show.

    Whatever goes wrong in here ends the watching, and never the run.
    """

    def __init__(self, told: Callable[[Summary], None] | None = None) -> None:
        """``told`` is called in the thread with every new summary."""
        self.summary: Summary | None = None
        self._told = told
        self._directory: Path | None = None
        self._changed = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def follow(self, directory: Path | None) -> None:
        """Goes over to another run; None: to none."""
        if directory == self._directory:
            return
        self._directory = directory
        self._changed.set()
        if self._thread is None and directory is not None:
            self._thread = threading.Thread(target=self._work, name="watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join(END_S)

    def _work(self) -> None:
        try:
            while not self._stopped:
                self._changed.clear()
                directory = self._directory
                if directory is None:
                    self._changed.wait()
                else:
                    self._watch(directory)
        except Exception:  # the run does not depend on its display
            self.summary = None

    def _watch(self, directory: Path) -> None:
        live = LiveRun(directory, fetches=False)
        watch = Watch(live.head)
        try:
            pause = 0.0
            while not self._changed.wait(pause):
                begun = time.thread_time()
                changes = live.poll(MOST_BYTES)
                watch.take(changes)
                watch.know(live.head)
                if changes and watch.state.now > 0:
                    self.summary = watch.summary()
                    if self._told is not None:
                        self._told(self.summary)
                if live.ended:
                    self._changed.wait()
                    return
                pause = max(PERIOD_S, (time.thread_time() - begun) / MOST_SHARE)
        finally:
            live.close()
            self.summary = None
