"""A standalone Spark cluster on loopback: a master and workers as processes that can be killed one by one."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from orchestrator.spark.java import find_java, java_home

PATIENCE_S = 180.0
HOST = "127.0.0.1"
MARK = "ROVE_TEST_CLUSTER"
LOG = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


@dataclass
class Cluster:
    """``folder``: all it writes is there. Its processes carry ``MARK`` with this folder."""

    folder: Path
    port: int
    master: "subprocess.Popen[bytes]"
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self.port}"

    def add_workers(self, number: int, cores: int = 1, memory: str = "1g") -> None:
        """Starts workers and waits until the master knows them."""
        known = self._registered()
        for _ in range(number):
            name = f"worker-{len(self.workers)}"
            options = ["--host", HOST, "--port", "0", "--webui-port", "0", "--cores", str(cores)]
            options += ["--memory", memory, "--work-dir", str(self.folder / name), self.url]
            self.workers.append(_start(self.folder, name, "worker.Worker", options))
        _await(lambda: self._registered() >= known + number, "the workers register")

    def kill_worker(self, index: int) -> None:
        """Kills a worker as a power cut would; its executors notice and end."""
        self.workers[index].send_signal(signal.SIGKILL)
        self.workers[index].wait(PATIENCE_S)

    def processes(self) -> list[int]:
        """Returns the processes of the cluster that are alive, executors and their Pythons too."""
        mark = f"{MARK}={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            process.terminate()
        for process in (*self.workers, self.master):
            with suppress(subprocess.TimeoutExpired):
                process.wait(10.0)
        deadline = time.monotonic() + 10.0
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (*self.workers, self.master):
            process.wait(PATIENCE_S)

    def _registered(self) -> int:
        return (self.folder / "master.log").read_text(errors="replace").count("Registering worker")


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster of workers with one core each; nothing of it is left afterwards but ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.properties").write_text(LOG)
    port = free_port()
    options = ["--host", HOST, "--port", str(port), "--webui-port", "0"]
    cluster = Cluster(folder, port, _start(folder, "master", "master.Master", options))
    try:
        _await(lambda: _answers(port), "the master answers")
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.stop()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])


def _start(folder: Path, name: str, program: str, options: list[str]) -> "subprocess.Popen[bytes]":
    home = Path(pyspark.__file__).parent
    foreign = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "ROVE_", "PYTHON")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
        MARK: str(folder),
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    }
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), 1.0):
        return True
    return False


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.1)
