"""Opens an address in the browser without showing it to other users of the machine.

A browser's arguments are in the list of processes, which everybody can read, and the address may have a
token. So the browser gets the name of a private file, which leads it to the address.
"""

import os
import tempfile
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path
from threading import Lock, Thread, Timer

KEEP_S = 60.0
"""How long a browser may take to read the file."""


class Opener:
    """Must be closed: then no file is left."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._file: Path | None = None
        self._timer: Timer | None = None

    def open(self, url: str) -> None:
        """Returns at once: some browsers stay until their window is closed. Call it once."""
        descriptor, name = tempfile.mkstemp(prefix="rove-", suffix=".html")  # 0600
        self._file = Path(name)
        with os.fdopen(descriptor, "w") as file:
            file.write(_leading_to(url))
        self._timer = Timer(KEEP_S, self._remove)
        self._timer.daemon = True
        self._timer.start()
        Thread(target=webbrowser.open, args=(self._file.as_uri(),), name="browser", daemon=True).start()

    def close(self) -> None:
        """May be repeated."""
        if self._timer is not None:
            self._timer.cancel()
        self._remove()

    def __enter__(self) -> "Opener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remove(self) -> None:
        with self._lock, suppress(OSError):
            if self._file is not None:
                self._file.unlink()


def _leading_to(url: str) -> str:
    quoted = escape(url, quote=True)
    return (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={quoted}"><title>Rove</title>'
        f'<a href="{quoted}">Rove</a>\n'
    )
