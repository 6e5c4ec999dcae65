"""Runs a supervisor as a process: prints one line when it is ready, or why not; the rest goes to its log."""

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from node_agent.host.load_probe import HostProbe, Meter
from node_agent.model.host_load import FILE as HOST_LOAD
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.order import BadOrder, SupervisorOrder, read_order
from node_agent.supervisor.place import RECORD, Occupied, make_room_for_end, occupied, require_private
from node_agent.supervisor.programs import CannotStart
from node_agent.supervisor.supervisor import Supervisor

EXIT_FAILED = 1


def run(place: Path) -> int:
    try:
        require_private(place)
        os.chdir(place)
        (place / RECORD).mkdir(mode=0o700, exist_ok=True)
        order = read_order(place)
        with occupied(place):
            make_room_for_end(place)
            return asyncio.run(_run(order, place))
    except (BadOrder, CannotStart, Occupied, OSError) as error:
        _say(str(error))
        _print_first_line({"error": str(error)})
        return EXIT_FAILED


async def _run(order: SupervisorOrder, place: Path) -> int:
    """Runs the supervisor. Raises CannotStart."""
    supervisor = Supervisor(order, place, _say)
    notes = await supervisor.start()
    with _probing(place / RECORD / HOST_LOAD) if order.probes_host else nullcontext():
        return await _supervise(supervisor, order, notes)


async def _supervise(supervisor: Supervisor, order: SupervisorOrder, notes: tuple[str, ...]) -> int:
    _say(f"supervises {order.run} on {order.node}, with a lease of {order.lease:g} s")
    _print_first_line({"ready": True, "pid": os.getpid(), "protocol": PROTOCOL, "notes": notes})
    await supervisor.run()
    return 0


@contextmanager
def _probing(file: Path) -> Iterator[None]:
    """Measures the host's load in a thread: the supervisor is idle enough not to delay it."""
    with file.open("ab", buffering=0) as samples:
        probe = HostProbe(samples.write, Meter())
        probe.start()
        try:
            yield
        finally:
            probe.stop()


def _print_first_line(said: Mapping[str, Any]) -> None:
    """Writes a line for the process that started this one, which may be
    gone; later output goes to the log."""
    with suppress(OSError):
        os.write(1, msgspec.json.encode(said) + b"\n")
    os.dup2(2, 1)


def _say(what: str) -> None:
    with suppress(OSError):  # the disk may be full; the rest must still be done
        print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ} {what}", file=sys.stderr, flush=True)
