"""Finds processes of a run by their mark in /proc, and ends them by pidfd.

A pid may be reused between a look and a signal; a pidfd may not. So the mark is read again once the pidfd is
held, and only then a signal is sent.
"""

import os
import select
import signal
import time
from collections.abc import Iterable

from node_agent.host.marked_processes import (
    MARK,
    PLACE,
    Identity,
    identify,
    mark,
    marked,
    marked_places,
    this_process,
)

__all__ = [
    "MARK",
    "PLACE",
    "Identity",
    "end",
    "identify",
    "mark",
    "marked",
    "marked_places",
    "request_stop",
    "this_process",
]


def end(processes: Iterable[Identity], grace: float) -> list[Identity]:
    """Sends SIGTERM, then SIGKILL to what is left after ``grace`` seconds; returns the ended processes."""
    held = {descriptor: process for process in processes if (descriptor := _hold(process)) is not None}
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for descriptor in _unfinished(held, 0):
                _send(descriptor, number)
            if not _unfinished(held, grace):
                break
        return [process for process in held.values() if not process.is_alive()]
    finally:
        for descriptor in held:
            os.close(descriptor)


def request_stop(process: Identity) -> bool:
    """Asks a process to stop in order, as Ctrl-C does. Returns False if it is gone."""
    descriptor = _hold(process)
    if descriptor is None:
        return False
    try:
        _send(descriptor, signal.SIGINT)
        return True
    finally:
        os.close(descriptor)


def _hold(process: Identity) -> int | None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return None
    if process.is_alive():
        return descriptor
    os.close(descriptor)
    return None


def _send(descriptor: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return


def _unfinished(descriptors: Iterable[int], seconds: float) -> list[int]:
    """Returns those that have not ended after ``seconds``; returns earlier if all have."""
    waiting = list(descriptors)
    deadline = time.monotonic() + seconds
    while waiting:
        left = max(0.0, deadline - time.monotonic())
        poll = select.poll()
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN)
        ended = {descriptor for descriptor, _ in poll.poll(left * 1000)}
        waiting = [descriptor for descriptor in waiting if descriptor not in ended]
        if left == 0.0:
            break
    return waiting
