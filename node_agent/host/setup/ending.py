"""Waits for the end: a signal, or the end of standard input."""

import os
import select
import signal

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ending:
    """After the first request further signals are ignored, so that undoing always completes."""

    def __init__(self) -> None:
        self._signalled, written = os.pipe()
        os.set_blocking(written, False)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self._asked = False

    def is_asked(self) -> bool:
        return self._look(0.0)

    def wait(self) -> None:
        while not self._look(None):
            pass

    def _look(self, timeout: float | None) -> bool:
        if self._asked:
            return True
        try:
            ready, _, _ = select.select([0, self._signalled], [], [], timeout)
        except OSError:  # there is no standard input
            ready = [self._signalled]
        self._asked = self._signalled in ready or (0 in ready and _is_over(0))
        return self._asked


def _is_over(descriptor: int) -> bool:
    try:
        return not os.read(descriptor, 4096)
    except OSError:
        return True
