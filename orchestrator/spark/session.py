"""Starts a Spark session that starts fast, prints nothing on the terminal and leaves nothing behind.

It computes on this machine, or on a cluster: then it brings Rove's code to the executors, and no step waits
without bound for a master or an executor.

The JVM and its scratch directory belong to the ``with`` block. They also go if this process is killed: the
JVM ends when its standard input does, and a watcher removes the directory when both processes are gone.
"""

import logging
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from orchestrator.errors import RoveError
from orchestrator.spark.class_archive import WRITING_S, ClassArchive, class_archive
from orchestrator.spark.cluster import HERE, Kind, Master, await_executor, executors_watched, reach
from orchestrator.spark.interrupts import interrupts_are_heard
from orchestrator.spark.java import Java, find_java, java_home
from orchestrator.spark.placing import executors_python, settings_at
from orchestrator.spark.shipping import code_archive
from orchestrator.spark.tuning import tuning_for

START_TIMEOUT_S = 300.0
"""Long, because a busy machine takes minutes for what takes seconds otherwise."""
STOP_TIMEOUT_S = 15.0

LOG_SETTINGS = "log4j2.properties"
QUIET_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""

# Waits for the end of its input, which the session and the JVM hold open, then removes the directory.
WATCHER = 'cat >/dev/null; rm -rf -- "$1"'


@contextmanager
def spark_session(
    java: Java | None = None,
    input_bytes: int = 0,
    master: Master = HERE,
    conf: Mapping[str, str] = MappingProxyType({}),
    archive_classes: bool = False,
) -> Iterator[SparkSession]:
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
) -> Iterator[Callable[[], SparkSession]]:
    """Lets the JVM start while the caller does something else. The function that it gives waits for the
    JVM, and returns the session of ``spark_session``.
    """
    java = java or find_java()
    home = java_home(java)
    address = reach(master)
    archive = class_archive(java.executable, _spark_home(), archive_classes) if master.is_local else None
    with interrupts_are_heard(), _scratch_directory() as (scratch, held_open):
        tuned = _settings(scratch, tuning_for(input_bytes), archive)
        settings = {**tuned, **settings_at(master, address), **conf}
        process = _start_jvm(home, scratch, settings, held_open, master, archive)
        try:
            with ExitStack() as connected:

                @cache
                def connect() -> SparkSession:
                    with _bounded_start(process, master):
                        spark = _connect(process, scratch, settings, executors_python(master))
                    connected.callback(_disconnect, spark)
                    _say_nothing_of_broken_connections(spark)
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
            in_time = _end(process, WRITING_S if archive and archive.fresh else STOP_TIMEOUT_S)
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
    return (
        f"Spark could not start with {master.url}{late}: is that a master of version {pyspark.__version__}?"
    )


def _first_line(error: Exception) -> str:
    """Returns what happened in the JVM, without its stack."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line.startswith((": ", "Caused by: "))]
    return (told or [line for line in lines if line] or [type(error).__name__])[0].removeprefix(": ")[:300]


@contextmanager
def _scratch_directory() -> Iterator[tuple[Path, int]]:
    """Makes a directory that is removed when the last holder of the descriptor is gone, however it ended."""
    scratch = Path(tempfile.mkdtemp(prefix="rove-spark-"))
    read_end, held_open = os.pipe()
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", WATCHER, "rove-spark-watcher", str(scratch)],
        stdin=read_end,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read_end)
    try:
        yield scratch, held_open
    finally:
        os.close(held_open)
        try:
            watcher.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            watcher.kill()
            shutil.rmtree(scratch, ignore_errors=True)


def _settings(scratch: Path, tuning: Mapping[str, str], archive: ClassArchive | None) -> dict[str, str]:
    own = [f'"-Djava.io.tmpdir={scratch}"', f'"-Dlog4j2.configurationFile={scratch / LOG_SETTINGS}"']
    options = " ".join(
        [tuning["spark.driver.extraJavaOptions"], *own, *([archive.option] if archive else [])]
    )
    return {
        **tuning,
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": tuning["spark.driver.extraJavaOptions"],
        "spark.app.name": "rove",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Else every expression tells the JVM on which line of Python it stands.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Hundreds of small files: pack many into a task, and list them here instead of in a job of its own.
        "spark.sql.files.openCostInBytes": str(128 * 1024),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # In the format that other readers of Parquet know.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }


def _start_jvm(
    home: Path,
    scratch: Path,
    settings: Mapping[str, str],
    held_open: int,
    master: Master,
    archive: ClassArchive | None,
) -> subprocess.Popen[bytes]:
    (scratch / LOG_SETTINGS).write_text(QUIET_LOG)
    configuration = archive.configuration if archive else scratch
    command = [str(_spark_home() / "bin" / "spark-submit")]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    with (scratch / "spark.log").open("wb") as log:
        return subprocess.Popen(
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={
                **_jvm_environment(home, scratch, master, settings),
                "SPARK_CONF_DIR": str(configuration),
            },
            pass_fds=[held_open],
            start_new_session=True,  # Ctrl-C is for us to handle
        )


def _spark_home() -> Path:
    return Path(pyspark.__file__).parent


def _jvm_environment(
    home: Path, scratch: Path, master: Master, settings: Mapping[str, str]
) -> dict[str, str]:
    """Returns our environment without what the user may have set for another Spark or Hadoop."""
    hadoop = () if master.kind is Kind.YARN else ("HADOOP_", "YARN_")  # there it says where the master is
    foreign = ("SPARK_", "PYSPARK_", *hadoop)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": settings["spark.driver.bindAddress"],
        "PYSPARK_PYTHON": executors_python(master),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(scratch / "connection"),
    }


def _connect(
    process: subprocess.Popen[bytes], scratch: Path, settings: Mapping[str, str], python: str
) -> SparkSession:
    port, secret = _await_connection(process, scratch)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    variables = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PYTHON": python,
    }
    with _environment(variables), _interrupt_handler_kept():
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
        context = SparkContext(gateway=gateway, conf=conf)
    context.setLogLevel("ERROR")
    return SparkSession(context)


def _await_connection(process: subprocess.Popen[bytes], scratch: Path) -> tuple[int, str]:
    """Returns where the JVM listens and its secret, from the file that it renames into place."""
    info = scratch / "connection"
    deadline = time.monotonic() + START_TIMEOUT_S
    while not info.is_file():
        if process.poll() is not None:
            tail = (scratch / "spark.log").read_text(errors="replace").strip()[-2000:]
            raise RoveError(f"Spark did not start (exit code {process.returncode}).\n{tail}")
        if time.monotonic() > deadline:
            raise RoveError(f"Spark did not start within {START_TIMEOUT_S:.0f} s.")
        time.sleep(0.05)
    port, length = struct.unpack_from("!ii", data := info.read_bytes())
    return port, data[8 : 8 + length].decode()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


@contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """Keeps our SIGINT handler, which PySpark replaces."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def side_by_side(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Opens threads for Spark jobs. An interrupted caller does not wait for them: they end with the JVM."""
    executor = ThreadPoolExecutor(threads)
    try:
        yield executor
    finally:
        executor.shutdown(wait=sys.exc_info()[0] is None, cancel_futures=True)


def _say_nothing_of_broken_connections(spark: SparkSession) -> None:
    """Silences messages of Py4J and PySpark threads that notice late that the JVM was killed.

    If it matters, the call that fails raises an exception.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_from_py4j)
    setattr(spark.sparkContext._accumulatorServer, "handle_error", lambda request, client: None)  # noqa: B010


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Filters messages that Py4J sends to the root logger."""
    return "py4j" not in Path(record.pathname).parts


def _disconnect(spark: SparkSession) -> None:
    """Resets what PySpark stores in its classes, so that a later session in this process can start."""
    gateway = SparkContext._gateway
    try:
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            spark.stop()
        with suppress(Exception):  # not done if the JVM is gone
            spark.sparkContext._accumulatorServer.shutdown()
        if gateway is not None:
            with suppress(Exception):
                gateway.shutdown()
    finally:
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None


def _end(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Lets the JVM end; kills it if it takes longer. Says whether it ended by itself."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(timeout)
    except BaseException as error:
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return False
    return True
