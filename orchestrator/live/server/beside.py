"""The page's server as a process of its own, beside the run that it shows: browsers never delay the run."""

import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from node_agent.model.checked import Checked, Refused

END_S = 10.0
_MOMENT_S = 0.2
_MOST_LINE = 4096


class Started(Struct, frozen=True):
    """The first line that `rove serve --json` prints."""

    url: str


_LINES: Checked[Started] = Checked(Started, _MOST_LINE)


class PageBeside:
    """Must be closed. It ends with this process, however that ends: its standard input is a pipe from here.

    It is in a session of its own, so that a Ctrl-C, which asks the run to stop, leaves the page.
    """

    def __init__(self, command: Sequence[str], say: Callable[[str], None]) -> None:
        """``command`` is a `rove serve` with ``--json --while-input``. ``say`` gets the address later."""
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._say = say
        self.url = ""
        self._reading = threading.Thread(target=self._read, name="page", daemon=True)
        self._reading.start()

    def goes_on(self) -> bool:
        """Waits a moment; returns whether the page's process still runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_MOMENT_S)
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the page once browsers have heard of the run's end. May be repeated."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(END_S)
                break
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()
        self._reading.join(END_S)

    def __enter__(self) -> "PageBeside":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            line = lines.readline(_MOST_LINE)
            try:
                self.url = _LINES.decode(line).url
            except Refused:
                self._say("The page could not be started; the run goes on without it.")
                return
            self._say(f"Watch it: {self.url}")
            while lines.read(_MOST_LINE):
                pass
