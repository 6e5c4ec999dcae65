"""A network of their own for browsers and the servers that they look at.

Chromium gives up its requests (``ERR_NETWORK_CHANGED``) when a link of its namespace comes or goes, and
other tests, which run at the same time, make links.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from orchestrator.backends.netns import syscalls


@contextmanager
def apart() -> Iterator[None]:
    """Within, this thread opens sockets and starts processes in that network. Without root: where it is."""
    if os.geteuid() != 0:
        yield
        return
    here = os.open(syscalls.OWN_NETWORK, os.O_RDONLY)
    try:
        syscalls.setns(_network(), syscalls.CLONE_NEWNET)
        yield
    finally:
        syscalls.setns(here, syscalls.CLONE_NEWNET)
        os.close(here)


@cache
def _network() -> int:
    """A descriptor keeps the namespace for as long as the process lives."""

    def make() -> int:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=20)
        return os.open(syscalls.OWN_NETWORK, os.O_RDONLY)

    return syscalls.in_own_thread(make)
