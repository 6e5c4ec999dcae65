"""Says in one sentence why an analysis failed: during which step, and what went wrong there."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line

LONGEST_REASON = 400


class AnalysisFailed(RoveError):
    """These runs could not be analysed; others may be."""


class DiskFull(RoveError):
    """There is no room for tables, or for what Spark keeps meanwhile."""


class SparkEnded(RoveError):
    """The JVM is gone: killed, or out of memory."""


@contextmanager
def failing_clearly(runs: Sequence[str], step: Callable[[], str]) -> Iterator[None]:
    """Turns errors of Spark, of the disk and of columns into one sentence. ``step``: what was being done."""
    import pyarrow as pa
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    names = ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
    try:
        yield
    except (PySparkException, Py4JError, pa.ArrowException, OverflowError, OSError, EOFError) as error:
        if is_of_full_disk(error):
            text = "found the disk full: make room, then analyse again; nothing is lost"
            raise DiskFull(f"the analysis of {names} {text}") from error
        if isinstance(error, (Py4JNetworkError, ConnectionError, EOFError)):
            raise SparkEnded(
                f"the analysis of {names} failed while {step()}: Spark's process ended (was it killed, or was"
                " there too little memory?): analyse again; nothing is lost"
            ) from error
        raise AnalysisFailed(f"the analysis of {names} failed while {step()}: {reason(error)}") from error


def is_of_full_disk(error: BaseException) -> bool:
    """Whether this error, or what caused it, was a full disk, here or in Spark."""
    full = (errno.ENOSPC, errno.EDQUOT)
    texts = [os.strerror(number) for number in full]
    found: BaseException | None = error
    while found is not None:
        if getattr(found, "errno", None) in full or any(text in str(found) for text in texts):
            return True
        found = found.__cause__ or found.__context__
    return False


def reason(error: BaseException) -> str:
    """Returns what happened, without stacks: who failed (Spark, the system, a column) and why."""
    import pyarrow as pa

    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, OverflowError | pa.ArrowException):
        return f"a value does not fit its column ({_first(str(error))})"
    return f"Spark says: {_told_by_spark(str(error)) or type(error).__name__}"


def _told_by_spark(text: str) -> str:
    """Returns the sentence that names the cause; Spark's first line often only says what was called."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    python = [
        line for line in lines if "Error: " in line and not line.startswith(("at ", "py4j.", "Caused by"))
    ]
    first = [line.removeprefix(": ") for line in lines if not line.startswith("An error occurred while")]
    return one_line((python or causes[-1:] or first or [""])[-1 if python else 0], LONGEST_REASON)


def _first(text: str) -> str:
    return one_line(text.partition("\n")[0], LONGEST_REASON)
