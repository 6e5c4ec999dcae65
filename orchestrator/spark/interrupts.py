"""Lets Ctrl-C end an analysis at any moment.

Python drops a KeyboardInterrupt that is raised while an object is cleaned up, and PySpark cleans up objects
of the JVM all the time. Such an interrupt is sent once more.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN_S = 0.02
"""By then the clean-up has ended; if another one is under way, it is tried once more."""


@contextmanager
def interrupts_are_heard() -> Iterator[None]:
    before = sys.unraisablehook

    def take(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            # A signal, since that also ends what the main thread waits for.
            main = threading.main_thread().ident or 0
            again = threading.Timer(AGAIN_S, signal.pthread_kill, (main, signal.SIGINT))
            again.daemon = True
            again.start()
        else:
            before(unraisable)

    sys.unraisablehook = take
    try:
        yield
    finally:
        sys.unraisablehook = before
