"""Addresses of Spark masters: what users may write, whether one answers, and whether it gives executors."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.errors import BadInput, RoveError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBE_TIMEOUT_S = 5.0
"""How long to wait for each of a master's addresses."""
EXECUTOR_TIMEOUT_S = 60.0
"""How long to wait for the first executor, and later without any."""
MASTERS = "local[2], spark://host:7077, yarn, or k8s://https://host:6443"
_MOMENT_S = 0.2
_LOOK_S = 2.0
_LOCAL = re.compile(r"local(\[(\d{1,4}|\*)\])?")
_HOST = r"[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]"
_ADDRESS = re.compile(rf"({_HOST}):(\d{{1,5}})")
_KUBERNETES = re.compile(rf"k8s://(?:(https?)://)?({_HOST})(?::(\d{{1,5}}))?/?")
_PORTS = {"https": 443, "http": 80, None: 443}


class Kind(StrEnum):
    LOCAL = "local"
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "kubernetes"


Address = tuple[str, int]


@dataclass(frozen=True)
class Master:
    """``addresses``: where it listens, as far as its name says so."""

    url: str
    kind: Kind
    addresses: tuple[Address, ...] = ()

    @property
    def is_local(self) -> bool:
        return self.kind is Kind.LOCAL


HERE = Master("local[2]", Kind.LOCAL)
"""This machine, for analyses."""


def parse_master(text: str) -> Master:
    """Reads a master as users write it. Raises BadInput."""
    text = text.strip()
    if _LOCAL.fullmatch(text) and text != "local[0]":
        return Master(text, Kind.LOCAL)
    if text == "yarn":
        return Master(text, Kind.YARN)
    if text.startswith("spark://"):
        found = [_ADDRESS.fullmatch(each) for each in text.removeprefix("spark://").split(",")]
        addresses = [(each[1].strip("[]"), int(each[2])) for each in found if each is not None]
        if len(addresses) == len(found) and all(0 < port < 65536 for _, port in addresses):
            return Master(text, Kind.STANDALONE, tuple(addresses))
    if match := _KUBERNETES.fullmatch(text):
        return Master(text, Kind.KUBERNETES, ((match[2].strip("[]"), int(match[3] or _PORTS[match[1]])),))
    raise BadInput(f"{text!r} is no Spark master: write {MASTERS}")


def reach(master: Master, timeout: float = PROBE_TIMEOUT_S) -> str:
    """Connects to the master; returns the address of this machine on the way there.

    Raises RoveError if none of its addresses answers within ``timeout``.
    """
    if master.is_local:
        return "127.0.0.1"
    if not master.addresses:  # only Hadoop's configuration says where it is
        return socket.gethostbyname(socket.gethostname())
    why = ""
    for host, port in master.addresses:
        try:
            with socket.create_connection((host, port), timeout) as connection:
                return str(connection.getsockname()[0])
        except TimeoutError:
            why = f"no answer within {timeout:g} s"
        except OSError as error:
            why = error.strerror or str(error)
    raise RoveError(
        f"no Spark master answers at {master.url} ({why}): start it, or correct the address; nothing was done"
    )


def executors(spark: "SparkSession") -> int:
    """Counts the executors that are there now, without the driver."""
    scala = spark.sparkContext._jsc.sc()
    return int(scala.getExecutorMemoryStatus().size()) - 1


def await_executor(spark: "SparkSession", master: Master) -> None:
    """Waits for the first executor. Raises RoveError if none comes."""
    if master.is_local:
        return
    deadline = time.monotonic() + EXECUTOR_TIMEOUT_S
    while executors(spark) < 1:
        if time.monotonic() > deadline:
            raise RoveError(
                f"{master.url} answers, but gave no executor within {EXECUTOR_TIMEOUT_S:g} s: see that"
                " workers are there, have a free core and 1 GB, and can connect to this machine"
            )
        time.sleep(_MOMENT_S)


@contextmanager
def executors_watched(spark: "SparkSession", master: Master, give_up: Callable[[], None]) -> Iterator[None]:
    """Calls ``give_up`` if there is no executor for some time: Spark itself would wait for ever.

    What then fails inside is raised as one RoveError.
    """
    over, given_up = threading.Event(), threading.Event()

    def watch() -> None:
        seen = time.monotonic()
        while not over.wait(_LOOK_S):
            with suppress(Exception):
                if executors(spark) > 0:
                    seen = time.monotonic()
            if time.monotonic() - seen > EXECUTOR_TIMEOUT_S:
                given_up.set()
                give_up()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if given_up.is_set():
            text = f"{master.url} has had no executor for {EXECUTOR_TIMEOUT_S:.0f} s: start its workers again"
            raise RoveError(f"{text}, then repeat the command") from error
        raise
    finally:
        over.set()
        watcher.join(PROBE_TIMEOUT_S)
