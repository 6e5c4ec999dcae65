"""Calls an extension's code while files are read and planned, so that it can neither end nor block the
command.
"""

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from node_agent.extensions import ExtensionError
from node_agent.extensions.guard import Failed, Foreign, guarded
from orchestrator.errors import BadInput

T = TypeVar("T")

LIMIT_S = 10.0
"""The limit of processor time for one call to an extension of others."""
OWN_LIMIT_S = 86_400.0
"""The limit for one of Rove's own, which may have to read large files."""


def called(what: str, file: str | None, function: Callable[[], T], *, own: bool = False) -> T:
    """Returns what ``function`` returns. Raises ExtensionError, with ``what`` and its file and line, if it
    raises, exits or takes too long.

    It passes on ValidationError, BadInput and ExtensionError, because these are about the content of the
    user's file.
    """
    try:
        return guarded(Foreign(what, "", file), function, OWN_LIMIT_S if own else LIMIT_S)
    except Failed as failed:
        cause = failed.__cause__
        if isinstance(cause, ValidationError | BadInput | ExtensionError):
            raise cause from cause.__cause__
        raise ExtensionError(f"{what}: {failed}") from cause
