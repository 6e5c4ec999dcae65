"""Starts the JVM of a Spark session, with a scratch directory of its own, and ends it.

Imports no PySpark: the JVM starts while this process still imports what it needs.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from orchestrator.errors import RoveError
from orchestrator.spark.class_archive import ClassArchive
from orchestrator.spark.cluster import Kind, Master
from orchestrator.spark.placing import executors_python

STOP_TIMEOUT_S = 15.0
LOG, CONNECTION = "spark.log", "connection"
"""Files in the scratch directory: what the JVM prints, and where it listens."""

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
def scratch_directory() -> Iterator[tuple[Path, int]]:
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


def settings_in(scratch: Path, tuning: Mapping[str, str], archive: ClassArchive | None) -> dict[str, str]:
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


def start_jvm(
    home: Path,
    scratch: Path,
    settings: Mapping[str, str],
    held_open: int,
    master: Master,
    archive: ClassArchive | None,
) -> subprocess.Popen[bytes]:
    (scratch / LOG_SETTINGS).write_text(QUIET_LOG)
    configuration = archive.configuration if archive else scratch
    command = [str(spark_home() / "bin" / "spark-submit")]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    with (scratch / LOG).open("wb") as log:
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


def spark_home() -> Path:
    """Returns where PySpark is installed."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise RoveError("PySpark is not installed here: pip install 'rove-testbed[orchestrator]'")
    return Path(found.submodule_search_locations[0])


def _jvm_environment(
    home: Path, scratch: Path, master: Master, settings: Mapping[str, str]
) -> dict[str, str]:
    """Returns our environment without what the user may have set for another Spark or Hadoop."""
    hadoop = () if master.kind is Kind.YARN else ("HADOOP_", "YARN_")  # there it says where the master is
    foreign = ("SPARK_", "PYSPARK_", *hadoop)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": settings["spark.driver.bindAddress"],
        "PYSPARK_PYTHON": executors_python(master),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(scratch / CONNECTION),
    }


def end_jvm(process: subprocess.Popen[bytes], timeout: float) -> bool:
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
