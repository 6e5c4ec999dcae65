"""Turns a fork of the server into a node's program: namespace, session, streams, user, then the program.

The child must keep nothing of the server's: no descriptors, no signal handlers, no exit handlers.
"""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from node_agent.host.file_limit import limit_files
from orchestrator.backends.netns import syscalls

DESCRIPTORS = 4
"""The descriptors of each request, in this order: network namespace, standard input, output, error."""

ERROR_SIZE = 1 << 12
_FIRST_AFTER_STREAMS = 3
_COULD_NOT_START = 127


def run(request: dict[str, Any], descriptors: list[int], errors: int) -> NoReturn:
    """Becomes the program. Writes to ``errors`` why it could not start, and closes it when it starts."""
    try:
        _take_descriptors(descriptors, errors)
        _prepare(request)
        program = _program(request)
    except BaseException as error:
        os.write(errors, f"{type(error).__name__}: {error}".encode()[:ERROR_SIZE])
        os._exit(_COULD_NOT_START)
    os.close(errors)
    status = 1
    try:
        result = program(**request["arguments"])
        status = 0 if result is None else int(result)
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _take_descriptors(descriptors: list[int], errors: int) -> None:
    network, *streams = descriptors
    syscalls.setns(network, syscalls.CLONE_NEWNET)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_FIRST_AFTER_STREAMS, errors)
    os.closerange(errors + 1, os.sysconf("SC_OPEN_MAX"))


def _prepare(request: dict[str, Any]) -> None:
    server = os.getppid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    if request["user"] is not None:
        os.setgroups([])
        os.setgid(request["user"]["gid"])
        os.setuid(request["user"]["uid"])
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != server:
        os._exit(_COULD_NOT_START)


def _program(request: dict[str, Any]) -> Callable[..., int | None]:
    if "argv" in request:
        # Python ignores it; other programs expect to end with their reader.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        if request["limit_files"]:
            limit_files()
        _execute(request["argv"])
    module, _, function = request["entry"].partition(":")
    found: Callable[..., int | None] = getattr(importlib.import_module(module), function)
    return found


def _execute(argv: list[str]) -> NoReturn:
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        raise OSError(error.errno, error.strerror, argv[0]) from error
