"""Measures whether this machine keeps up: one line of JSON a second (``model.host_load.LoadSample``).

``python -m node_agent.host.load_probe [--group DIRECTORY]`` prints them until its input ends; a supervisor
runs the same as a thread. Three things are measured, each of which misses what another sees:

- the kernel's pressure stall information: for how much of the time processes waited;
- how late the probe itself wakes up, at normal priority: a process that sleeps is preferred by the scheduler,
  so this stays small on a machine whose processors are merely busy, and is large where it stands still;
- without pressure information (phones, Raspberry Pi OS by default): how long 10 ms of work really take.

The wall clock is held against the one that nobody can set.
"""

import argparse
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from node_agent.model.host_load import LATE_MS, LoadSample, late_bin

PERIOD_S = 0.02
SAMPLE_S = 1.0
WORK_S = 0.01
"""Processor time a second, where there is no pressure information: 1 % of one core."""
STEP_NS = 5_000_000
"""A wall clock that moves by more against the steady one was set. Slewing by NTP moves both alike."""
PRESSURE = Path("/proc/pressure")
_MOST_MISSED = 10_000
_READINGS = 3
_JOIN_S = 5.0
_CHUNK = bytes(65536)


def _steady_ns() -> int:
    """Nobody can set it, and it goes on while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clocks(NamedTuple):
    wall_ns: Callable[[], int] = time.time_ns
    steady_ns: Callable[[], int] = _steady_ns


MACHINE = Clocks()


class ClockGuard:
    """Notices that somebody set the wall clock."""

    def __init__(self, clocks: Clocks = MACHINE) -> None:
        self._clocks = clocks
        self._known, _ = self._read()

    def step_ns(self) -> int:
        """By how much it was set since the last look; 0 if it was not."""
        offset, uncertainty = self._read()
        step = offset - self._known
        if abs(step) <= STEP_NS + uncertainty:
            return 0
        self._known = offset
        return step

    def _read(self) -> tuple[int, int]:
        """Wall time minus steady time. The reading that was disturbed least counts."""
        readings = []
        for _ in range(_READINGS):
            before = self._clocks.steady_ns()
            wall = self._clocks.wall_ns()
            after = self._clocks.steady_ns()
            readings.append((after - before, wall - (before + after) // 2))
        took, offset = min(readings)
        return offset, took


class Stalls:
    """The kernel's counters of one kind of pressure; None where it does not keep them, or tells nobody."""

    def __init__(self, file: Path, kind: str) -> None:
        self._file = file
        self._kind = kind
        self._known = self._total_us()

    @property
    def known(self) -> bool:
        return self._known is not None

    def share(self, seconds: float) -> float | None:
        """Of the time since the last look."""
        total, known = self._total_us(), self._known
        self._known = total
        if total is None or known is None or seconds <= 0:
            return None
        return round(min(max((total - known) / 1e6 / seconds, 0.0), 1.0), 4)

    def _total_us(self) -> int | None:
        with suppress(OSError, ValueError, IndexError):
            for line in self._file.read_text().splitlines():
                if line.startswith(self._kind):
                    return int(line.rpartition("total=")[2])
        return None


class Meter:
    """Gathers one sample after the other."""

    def __init__(
        self, group: Path | None = None, pressure: Path = PRESSURE, clocks: Clocks = MACHINE
    ) -> None:
        """``group``: the control group of the run's processes."""
        self._clocks = clocks
        self._guard = ClockGuard(clocks)
        self._waited = Stalls(pressure / "cpu", "some")
        self._group = Stalls(group / "cpu.pressure", "some") if group is not None else None
        self._memory = Stalls(pressure / "memory", "full")
        self._io = Stalls(pressure / "io", "full")
        self._begun = time.monotonic()
        self._late = [0] * (len(LATE_MS) + 1)
        self._latest_ms = 0.0

    def woke(self, late_s: float, times: int = 1) -> None:
        late_ms = max(late_s, 0.0) * 1e3
        self._late[late_bin(late_ms)] += times
        self._latest_ms = max(self._latest_ms, late_ms)

    def sample(self) -> LoadSample:
        """Of the time since the last one."""
        work_waited = None if self._waited.known else share_of_waiting(WORK_S)
        now = time.monotonic()
        seconds, self._begun = now - self._begun, now
        late, self._late = self._late, [0] * len(self._late)
        latest_ms, self._latest_ms = self._latest_ms, 0.0
        return LoadSample(
            t_ns=self._clocks.wall_ns(),
            seconds=round(seconds, 4),
            late=tuple(late),
            latest_ms=round(latest_ms, 3),
            waited=self._waited.share(seconds),
            group_waited=self._group.share(seconds) if self._group is not None else None,
            work_waited=work_waited,
            memory_stalled=self._memory.share(seconds),
            io_stalled=self._io.share(seconds),
            step_ns=self._guard.step_ns(),
        )


def share_of_waiting(work_s: float) -> float:
    """Works for ``work_s`` of processor time: the share of the time this took in which it had to wait.

    The work is more than one slice of the scheduler, which everybody gets at once; it lets go of Python's
    lock, so that other threads of this process are not held up.
    """
    begun, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < work_s:
        hashlib.sha256(_CHUNK)
    took = time.monotonic() - begun
    return round(max(1.0 - (time.thread_time() - used) / took, 0.0), 4)


class HostProbe(threading.Thread):
    """Hands each sample to ``write``, as a line. A write that fails is that sample's loss.

    The first one comes at once and is of no time: from then on all is measured.
    """

    def __init__(self, write: Callable[[bytes], object], meter: Meter) -> None:
        super().__init__(name="host probe", daemon=True)
        self._write = write
        self._meter = meter
        self._ended = threading.Event()

    def run(self) -> None:
        self._tell()
        due = time.monotonic() + PERIOD_S
        full = time.monotonic() + SAMPLE_S
        while not self._ended.wait(max(due - time.monotonic(), 0.0)):
            now = time.monotonic()
            # Wake-ups that a late one skipped were late as well: else a standstill would count as one.
            for missed in range(min(int((now - due) / PERIOD_S) + 1, _MOST_MISSED)):
                self._meter.woke(now - due - missed * PERIOD_S)
            due = max(due + PERIOD_S, now + PERIOD_S / 2)
            if now >= full:
                self._tell()
                full = time.monotonic() + SAMPLE_S
                due = time.monotonic() + PERIOD_S
        self._tell()

    def _tell(self) -> None:
        with suppress(OSError, ValueError):  # ValueError: the file was closed
            self._write(msgspec.json.encode(self._meter.sample()) + b"\n")

    def stop(self) -> None:
        self._ended.set()
        self.join(_JOIN_S)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m node_agent.host.load_probe", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--group", type=Path, metavar="DIRECTORY", help="the run's control group")
    probe = HostProbe(lambda line: os.write(1, line), Meter(parser.parse_args().group))
    probe.start()
    while os.read(0, 4096):
        pass
    probe.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
