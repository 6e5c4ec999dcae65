"""Starts a Spark session that starts fast, prints nothing on the terminal and leaves nothing behind.

It computes on this machine, or on a cluster: then it brings Rove's code to the executors, and no step waits
without bound for a master or an executor.

The JVM and its scratch directory belong to the ``with`` block. They also go if this process is killed: the
JVM ends when its standard input does, and a watcher removes the directory when both processes are gone.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.errors import RoveError
from orchestrator.spark.class_archive import WRITING_S, class_archive
from orchestrator.spark.cluster import HERE, Master, await_executor, executors_watched, reach
from orchestrator.spark.interrupts import interrupts_are_heard
from orchestrator.spark.java import Java, find_java, java_home
from orchestrator.spark.jvm import (
    STOP_TIMEOUT_S,
    end_jvm,
    scratch_directory,
    settings_in,
    spark_home,
    start_jvm,
)
from orchestrator.spark.placing import executors_python, settings_at
from orchestrator.spark.shipping import code_archive
from orchestrator.spark.tuning import tuning_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_TIMEOUT_S = 300.0
"""Long, because a busy machine takes minutes for what takes seconds otherwise."""


@contextmanager
def spark_session(
    java: Java | None = None,
    input_bytes: int = 0,
    master: Master = HERE,
    conf: Mapping[str, str] = MappingProxyType({}),
    archive_classes: bool = False,
) -> "Iterator[SparkSession]":
    """Opens one session with one JVM, tuned for about this much input.
    A process can have only one at a time.

    ``conf``: Spark's settings, instead of ours. ``archive_classes``: the first such session on a machine
    takes longer to end, so that later ones start sooner. Raises RoveError if no master or no
    executor answers.
    """
    with starting_session(java, input_bytes, master, conf, archive_classes) as connect:
        yield connect()


@contextmanager
def starting_session(
    java: Java | None = None,
    input_bytes: int = 0,
    master: Master = HERE,
    conf: Mapping[str, str] = MappingProxyType({}),
    archive_classes: bool = False,
) -> "Iterator[Callable[[], SparkSession]]":
    """Lets the JVM start while the caller does something else. The function that it gives waits for the
    JVM, and returns the session of ``spark_session``.
    """
    java = java or find_java()
    home = java_home(java)
    address = reach(master)
    archive = class_archive(java.executable, spark_home(), archive_classes) if master.is_local else None
    with interrupts_are_heard(), scratch_directory() as (scratch, held_open):
        tuned = settings_in(scratch, tuning_for(input_bytes), archive)
        settings = {**tuned, **settings_at(master, address), **conf}
        process = start_jvm(home, scratch, settings, held_open, master, archive)
        try:
            with ExitStack() as connected:

                @cache
                def connect() -> "SparkSession":
                    from orchestrator.spark.connecting import connect_to, disconnect

                    python = executors_python(master)
                    with _bounded_start(process, master):
                        spark = connect_to(process, scratch, settings, python, START_TIMEOUT_S)
                    connected.callback(disconnect, spark)
                    if not master.is_local:
                        await_executor(spark, master)
                        spark.sparkContext.addPyFile(str(code_archive(scratch)))
                        connected.enter_context(executors_watched(spark, master, process.kill))
                    return spark

                in_order = False
                try:
                    yield connect
                    # With our own settings a JVM here has nothing left to do, and takes a second to stop.
                    in_order = bool(conf) or not master.is_local or bool(archive and archive.fresh)
                finally:
                    # An interrupted call leaves the connection to the JVM unusable: it cannot stop in order.
                    if not in_order:
                        process.kill()
        finally:
            in_time = end_jvm(process, WRITING_S if archive and archive.fresh else STOP_TIMEOUT_S)
            if archive:
                archive.settle(process.returncode == 0, in_time)


@contextmanager
def _bounded_start(process: subprocess.Popen[bytes], master: Master) -> Iterator[None]:
    """Kills the JVM if it does not connect in time: something else than a master may listen there."""
    timer = threading.Timer(START_TIMEOUT_S, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    except RoveError:
        raise
    except Exception as error:
        late = "" if timer.is_alive() else f" within {START_TIMEOUT_S:.0f} s"
        raise RoveError(f"{_not_started(master, late)} ({_first_line(error)})") from error
    finally:
        timer.cancel()


def _not_started(master: Master, late: str) -> str:
    if master.is_local:
        why = "it is busy" if late else "perhaps it lacks memory for Java"
        return f"Spark could not start on this machine{late}: {why}. Records are kept: try again later"
    return f"Spark could not start with {master.url}{late}: is that a master of version {version('pyspark')}?"


def _first_line(error: Exception) -> str:
    """Returns what happened in the JVM, without its stack."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line.startswith((": ", "Caused by: "))]
    return (told or [line for line in lines if line] or [type(error).__name__])[0].removeprefix(": ")[:300]


@contextmanager
def side_by_side(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Opens threads for Spark jobs. An interrupted caller does not wait for them: they end with the JVM."""
    executor = ThreadPoolExecutor(threads)
    try:
        yield executor
    finally:
        executor.shutdown(wait=sys.exc_info()[0] is None, cancel_futures=True)
