"""Asks the kernel to wake this process on time."""

import contextlib
import ctypes
import gc
import os

_PR_SET_TIMERSLACK = 29
_PRIORITY = 10


def become_realtime() -> bool:
    """Sets timers without slack, no garbage collection, and real-time
    priority if allowed; returns whether it was."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
    gc.freeze()
    gc.disable()
    with contextlib.suppress(OSError):
        # Processes that this one starts must not be real-time, too.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
        return True
    return False
