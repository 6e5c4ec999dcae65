"""What goes wrong in a user's query, told by the user's own functions, files and lines."""

import traceback
from pathlib import Path


class QueryError(ValueError):
    """A query or an operator that is not written as it has to be; says everything that is wrong."""


class OperatorError(Exception):
    """A user's function failed, or returned what is no payload; its own exception is the cause."""


def place(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


def failed_at(error: BaseException, file: str) -> str | None:
    """The last line of ``file`` that an exception went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return place(file, frames[-1].lineno or 0) if frames else None
