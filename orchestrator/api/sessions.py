"""Shares one Spark session among all that need it: a process can have only one at a time."""

import atexit
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SharedSession:
    """Starts Spark for the first who needs it, and stops it when the last is done, or when Python ends.

    A session that was there before, such as a notebook service's own, is used and left as it is. One that has
    ended meanwhile, because somebody stopped it or its JVM was killed, is replaced for those who come next.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._opened = ExitStack()
        self._spark: SparkSession | None = None

    def acquire(self, input_bytes: int) -> "SparkSession":
        """Returns the session; it is tuned for ``input_bytes`` if it is started now."""
        with self._lock:
            if self._spark is not None and not _goes_on(self._spark):
                self._stop()
            if self._spark is None:
                self._spark = self._found_or_started(input_bytes)
            self._users += 1
            return self._spark

    def release(self, spark: "SparkSession") -> None:
        """Gives back what ``acquire`` returned."""
        with self._lock:
            if spark is not self._spark:
                return  # it has been replaced
            self._users -= 1
            if self._users <= 0:
                self._stop()

    def stop(self) -> None:
        """Stops the session, if it was started here, whoever uses it."""
        with self._lock:
            self._stop()

    def _found_or_started(self, input_bytes: int) -> "SparkSession":
        from pyspark.sql import SparkSession

        from orchestrator.spark.session import spark_session

        found = SparkSession.getActiveSession()
        return found or self._opened.enter_context(spark_session(input_bytes=input_bytes))

    def _stop(self) -> None:
        self._users, self._spark = 0, None
        self._opened.close()


def _goes_on(spark: "SparkSession") -> bool:
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:  # of Py4J, or it has forgotten its JVM
        return False


SESSION = SharedSession()
atexit.register(SESSION.stop)
