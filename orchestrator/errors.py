"""Errors with one clear message for the user, and their exit codes."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from node_agent.extensions import ExtensionError

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INVALID = 3
EXIT_INTERRUPTED = 130


class RoveError(Exception):
    """Something failed; the message says what, and what to do about it."""

    exit_code = EXIT_FAILED


class BadInput(RoveError):
    """The user's file, argument or reference cannot be used. Nothing was created."""

    exit_code = EXIT_BAD_INPUT


@contextmanager
def clear_errors(place: object = "") -> Iterator[None]:
    """Turns errors of the system and of extensions into RoveErrors. ``place``: see ``system_error_text``."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output has gone
    except ExtensionError as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise RoveError(system_error_text(error, place)) from error


def system_error_text(error: OSError, place: object = "") -> str:
    """Describes a system error for the user. ``place``: the path, if the error does not name one."""
    what = error.strerror or str(error)
    where = error.filename or place
    text = f"{what}: {where}" if where else what
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{text}: make room on that disk, or choose another one with --runs-dir; then repeat it"
    return text
