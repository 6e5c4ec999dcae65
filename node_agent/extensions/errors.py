"""Errors of extensions, in one sentence that names the user's file and line."""

import traceback
from types import CodeType, ModuleType

API_VERSION = 1
"""The version of the extension points. A module declares with ``ROVE_API = 1`` for which one it was
written.
"""


class ExtensionError(Exception):
    """An extension cannot be used. The message names it, its file and line, and what to do."""


def check_version(module: ModuleType, where: str) -> None:
    """Raises ExtensionError if ``module`` was written for another version of the extension points."""
    written_for = getattr(module, "ROVE_API", API_VERSION)
    if written_for != API_VERSION:
        raise ExtensionError(
            f"{where} was written for version {written_for!r} of Rove's extension points, "
            f"and this is version {API_VERSION}: change it, and then its ROVE_API"
        )


def explain(error: BaseException, file: str | None = None) -> str:
    """Returns ``my_policy.py, line 7: ZeroDivisionError: division by zero``: the last line of ``file`` that
    ran.

    Without ``file``, the line that raised the error.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}, line {error.lineno or 0}: {error.msg}"
    place = failing_line(error, file)
    return f"{place}: {type(error).__name__}: {error}" if place else f"{type(error).__name__}: {error}"


def failing_line(error: BaseException, file: str | None = None) -> str:
    """Returns ``my_policy.py, line 7``: the last line of ``file`` that ran, or the line that raised the
    error.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if file is None or frame.filename == file]
    return f"{_short(own[-1].filename)}, line {own[-1].lineno}" if own else ""


def definition(value: object) -> tuple[str | None, str]:
    """Returns the file that defines a function or class, and ``my_policy.py, line 3``; None and "" if
    unknown.
    """
    methods = vars(value).values() if isinstance(value, type) else ()
    for function in (getattr(value, "__func__", value), *methods):
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            return code.co_filename, f"{_short(code.co_filename)}, line {code.co_firstlineno}"
    return None, ""


def _short(file: str) -> str:
    return file.rpartition("/")[2]
