"""System calls that Python 3.11 does not offer; each raises OSError."""

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

OWN_NETWORK = Path("/proc/thread-self/ns/net")

_libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


def _checked(result: int, subject: str = "") -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject or None)


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)))


def setns(descriptor: int, kind: int) -> None:
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)))


def mount(source: str, target: Path, kind: str = "none", flags: int = 0) -> None:
    result = _libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), None)
    _checked(result, str(target))


def unmount(target: Path) -> None:
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(MNT_DETACH)), str(target))


def die_with_parent(number: int) -> None:
    """Requests signal ``number`` when the parent ends. A change of user id cancels it: call this last."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0))


def adopt_orphans() -> None:
    """Becomes the parent of every descendant whose own parent ends."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0))


def in_own_thread(function: Callable[[], T]) -> T:
    """Runs ``function`` in a thread that ends with it.

    A thread that changes its network namespace must not be reused. Whatever goes wrong, the caller and the
    rest of the process stay in their namespace.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="netns")
    thread.start()
    try:
        thread.join()
    except BaseException:
        thread.join()  # interrupted: do not leave the thread running
        raise
    return outcome.result()
