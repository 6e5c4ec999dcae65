"""Connects PySpark to a JVM that has been started, and disconnects it."""

import logging
import os
import signal
import struct
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from orchestrator.errors import RoveError
from orchestrator.spark.jvm import CONNECTION, LOG
from orchestrator.spark.remembered import remember_classes


def connect_to(
    process: subprocess.Popen[bytes],
    scratch: Path,
    settings: Mapping[str, str],
    python: str,
    timeout_s: float,
) -> SparkSession:
    """Waits until the JVM listens, and opens a session. ``python``: what executors run."""
    port, secret = _await_connection(process, scratch, timeout_s)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    variables = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PYTHON": python,
    }
    _say_nothing_of_broken_connections()
    with _environment(variables), _interrupt_handler_kept():
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
        context = SparkContext(gateway=gateway, conf=conf)
    context.setLogLevel("ERROR")
    remember_classes(context._jvm)
    # Its thread notices late that the JVM was killed, and would print that.
    setattr(context._accumulatorServer, "handle_error", lambda request, client: None)  # noqa: B010
    return SparkSession(context)


def _await_connection(process: subprocess.Popen[bytes], scratch: Path, timeout_s: float) -> tuple[int, str]:
    """Returns where the JVM listens and its secret, from the file that it renames into place."""
    info = scratch / CONNECTION
    deadline = time.monotonic() + timeout_s
    while not info.is_file():
        if process.poll() is not None:
            tail = (scratch / LOG).read_text(errors="replace").strip()[-2000:]
            raise RoveError(f"Spark did not start (exit code {process.returncode}).\n{tail}")
        if time.monotonic() > deadline:
            raise RoveError(f"Spark did not start within {timeout_s:.0f} s.")
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


def _say_nothing_of_broken_connections() -> None:
    """Silences messages of Py4J about a JVM that was killed, or a call that was interrupted.

    If it matters, the call that fails raises an exception.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_from_py4j)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Filters messages that Py4J sends to the root logger."""
    return "py4j" not in Path(record.pathname).parts


def disconnect(spark: SparkSession) -> None:
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
