"""Limits the files of a program that is about to be executed, so that its log cannot fill the disk."""

import resource
import signal

LARGEST_FILE = 16 << 20
"""Bytes."""


def limit_files() -> None:
    """Lets this process and what it executes write no file beyond ``LARGEST_FILE``.

    The program lives on: writes beyond it fail, and the signal that would end it is ignored.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = LARGEST_FILE if most == resource.RLIM_INFINITY else min(LARGEST_FILE, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
