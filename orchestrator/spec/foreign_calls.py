"""Calls code of an extension while a file is read and planned: it can neither end nor stall the command."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from node_agent.extensions import ExtensionError
from node_agent.extensions.guard import Failed, Foreign, guarded
from orchestrator.errors import BadInput

T = TypeVar("T")

LIMIT_S = 10.0
"""Processor time of one call to an extension of others."""
OWN_LIMIT_S = 86_400.0
"""Of one of Rove's own, which may have large files to read."""


def called(what: str, file: str | None, function: Callable[[], T], *, own: bool = False) -> T:
    """Returns what ``function`` returns. Raises ExtensionError, with ``what`` and its file and line, if it
    raises, exits or takes too long.

    ValidationError, BadInput and ExtensionError pass: they are about what the file says.
    """
    try:
        return guarded(Foreign(what, "", file), function, OWN_LIMIT_S if own else LIMIT_S)
    except Failed as failed:
        cause = failed.__cause__
        if isinstance(cause, ValidationError | BadInput | ExtensionError):
            raise cause from cause.__cause__
        raise ExtensionError(f"{what}: {failed}") from cause
