"""Errors in a user's query, which name the user's own functions, files and lines."""

import traceback
from pathlib import Path


class QueryError(ValueError):
    """A query or an operator is not written as required. Lists everything that is wrong."""


class OperatorError(Exception):
    """A user's function failed, or returned something that is no payload. The cause is its own exception."""


def place(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


def failed_at(error: BaseException, file: str) -> str | None:
    """Returns the last line of ``file`` that an exception passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return place(file, frames[-1].lineno or 0) if frames else None
