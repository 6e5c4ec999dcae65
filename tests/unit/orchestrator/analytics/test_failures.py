"""An analysis that fails says while doing what, and why, in one sentence."""

import errno

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException

from orchestrator.analytics.failures import AnalysisFailed, DiskFull, SparkEnded, failing_clearly, reason
from orchestrator.errors import RoveError

JAVA = """An error occurred while calling o80.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: java.lang.ArithmeticException: long overflow
\tat java.base/java.lang.Math.addExact(Math.java:903)
"""
FULL = """An error occurred while calling o80.parquet.
: org.apache.spark.SparkException: Job aborted
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
"""


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/x/y"),
            AnalysisFailed,
            "Permission denied: /x/y",
        ),
        (
            pa.ArrowInvalid("Value 300 too large\nmore"),
            AnalysisFailed,
            "does not fit its column (Value 300 too",
        ),
        (OverflowError("int too big"), AnalysisFailed, "a value does not fit its column (int too big)"),
        (
            AnalysisException("[NO_COLUMN] x is gone.\nplan"),
            AnalysisFailed,
            "Spark says: [NO_COLUMN] x is gone.",
        ),
        (Py4JError(JAVA), AnalysisFailed, "Spark says: java.lang.ArithmeticException: long overflow"),
        (
            Py4JNetworkError("Answer from Java side is empty"),
            SparkEnded,
            "Spark's process ended (was it killed",
        ),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), SparkEnded, "analyse again"),
    ],
)
def test_the_step_and_the_cause_are_named(error: Exception, kind: type[RoveError], text: str) -> None:
    with pytest.raises(kind) as failed, failing_clearly(["a", "b", "c", "d"], lambda: "making tables"):
        raise error
    told = str(failed.value)
    assert told.startswith("the analysis of a, b, c and 1 more failed while making tables: ")
    assert text in told and "\n" not in told


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EDQUOT, "Quota"), Py4JError(FULL)],
)
def test_a_full_disk_is_recognised_here_and_in_spark(error: Exception) -> None:
    with pytest.raises(DiskFull) as failed, failing_clearly(["a"], lambda: "making tables"):
        raise error
    assert str(failed.value) == (
        "the analysis of a found the disk full: make room, then analyse again; nothing is lost"
    )


def test_what_is_clear_already_stays_as_it_is() -> None:
    with pytest.raises(RoveError, match="no master"), failing_clearly(["a"], lambda: "starting Spark"):
        raise RoveError("no master")


def test_an_error_of_spark_without_a_text_has_a_name() -> None:
    assert reason(PySparkException("")) == "Spark says: PySparkException"
