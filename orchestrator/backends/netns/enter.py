"""Runs a command on a node with the caller's own terminal: `rove exec NODE -- cmd`."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from orchestrator.backends.netns import names, syscalls
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.marks import CONTROL, Mark
from orchestrator.errors import BadInput


def execute_on(mark: Mark, node: str, argv: Sequence[str], directory: Path = names.HOST_NAMES) -> NoReturn:
    """Replaces this process by ``argv`` in the node's namespace. It has
    the run's mark, so it ends with the network."""
    with names.names_of(mark, directory) as found:
        places = {named.node: named.descriptor for named in found if named.descriptor is not None}
        descriptor = places.get(node)
        if descriptor is None:
            nodes = ", ".join(name for name in places if not name.startswith(CONTROL[0]))
            raise BadInput(f"run {mark.run_id} has no node {node!r} here: it has {nodes or 'none'}")
        try:
            syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
        except OSError as error:
            raise NetworkError(f"cannot enter {node}: {error.strerror}") from error
        # Python ignores it; other programs expect to end with their reader.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            os.execvpe(argv[0], list(argv), {**os.environ, **mark.environment})
        except FileNotFoundError as error:
            raise BadInput(f"cannot run {argv[0]}: this machine does not have it; install it") from error
        except OSError as error:
            raise BadInput(f"cannot run {argv[0]}: {error.strerror}") from error
        except ValueError as error:
            raise BadInput(f"cannot run {argv[0]!r}: {error}") from error
