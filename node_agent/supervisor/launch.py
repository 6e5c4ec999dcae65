"""``start``: starts a supervisor in a session of its own, so that it survives the login that started it."""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import node_agent
from node_agent.host.marked_processes import mark
from node_agent.supervisor.order import BadOrder, SupervisorOrder, read_order
from node_agent.supervisor.place import LOG, RECORD, Occupied, is_occupied, require_private

SETUP_S = 45.0
SERVICE_S = 10.0
_OWN_S = 25.0
_EXIT_S = 5.0
_LONGEST_LINE = 64 * 1024


def launch(place: Path) -> dict[str, Any]:
    """Returns the supervisor's first message, once everything has
    started. Raises BadOrder, Occupied or OSError."""
    require_private(place)
    order = read_order(place)
    if is_occupied(place):
        raise Occupied("a supervisor runs here already")
    (place / RECORD).mkdir(mode=0o700, exist_ok=True)
    with open(place / RECORD / LOG, "ab", opener=_private) as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "node_agent.supervisor", "run", str(place)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": _python_path(), **mark(order.run, place)},
            cwd=place,
            start_new_session=True,
        )
    assert supervisor.stdout is not None
    said = _first_line(supervisor.stdout.fileno(), _start_timeout(order))
    if said is None:
        supervisor.send_signal(signal.SIGKILL)  # its programs end with it
        raise BadOrder(f"the supervisor was not ready within {_start_timeout(order):g} s; see {RECORD}/{LOG}")
    if not said:
        raise BadOrder(f"the supervisor ended before it was ready; see {RECORD}/{LOG}")
    readiness: dict[str, Any] = msgspec.json.decode(said)
    if error := readiness.get("error"):
        with suppress(subprocess.TimeoutExpired):
            supervisor.wait(_EXIT_S)
        raise Occupied(error) if is_occupied(place) else BadOrder(error)
    return readiness


def _private(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW, 0o600)


def _start_timeout(order: SupervisorOrder) -> float:
    return _OWN_S + (SETUP_S if order.setup else 0) + SERVICE_S * len(order.services)


def _first_line(descriptor: int, timeout: float) -> str | None:
    """Returns an empty text if the stream ended without a line; None if there is no line yet."""
    deadline = time.monotonic() + timeout
    said = b""
    while not said.endswith(b"\n") and len(said) <= _LONGEST_LINE:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        if not (more := os.read(descriptor, 65536)):
            return ""
        said += more
    return said.decode().strip()


def _python_path() -> str:
    """Returns this process's Python path in a form that works in another directory, and under sudo."""
    own = str(Path(node_agent.__file__).absolute().parents[1])
    given = [
        str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part
    ]
    return os.pathsep.join(dict.fromkeys([*given, own]))
