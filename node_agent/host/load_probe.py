"""Measures whether this machine keeps up: one line of JSON a second (``model.host_load.LoadSample``).

``python -m node_agent.host.load_probe [--group DIRECTORY]`` prints samples until its input ends; a supervisor
runs the probe as a thread. It measures four things, each of which misses something that another shows:

- how long the processes of the run's control group waited each time they could run, where it has one;
- the kernel's pressure stall information: for how much of the time processes waited;
- how late the probe itself wakes up, at normal priority: the scheduler prefers a process that sleeps, so this
stays small while processors are merely busy, and is large while the machine stands still;
- without pressure information (phones, Raspberry Pi OS by default): how long 10 ms of work really take.

It compares the wall clock with a clock that nobody can set.
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
"""Processor time a second where there is no pressure information: 1 % of one core."""
STEP_NS = 5_000_000
"""If the wall clock moves by more than this against the steady clock,
somebody set it. NTP slews both alike."""
PRESSURE = Path("/proc/pressure")
PROCESSES = Path("/proc")
_MOST_MISSED = 10_000
_READINGS = 3
_JOIN_S = 5.0
_CHUNK = bytes(65536)


def _steady_ns() -> int:
    """Returns a clock that nobody can set and that runs on while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clocks(NamedTuple):
    wall_ns: Callable[[], int] = time.time_ns
    steady_ns: Callable[[], int] = _steady_ns


MACHINE = Clocks()


class ClockGuard:
    """Notices when somebody sets the wall clock."""

    def __init__(self, clocks: Clocks = MACHINE) -> None:
        self._clocks = clocks
        self._known, _ = self._read()

    def step_ns(self) -> int:
        """Returns by how much the clock was set since the last call; 0 if it was not."""
        offset, uncertainty = self._read()
        step = offset - self._known
        if abs(step) <= STEP_NS + uncertainty:
            return 0
        self._known = offset
        return step

    def _read(self) -> tuple[int, int]:
        """Returns wall time minus steady time, from the least disturbed of
        several readings, and its uncertainty."""
        readings = []
        for _ in range(_READINGS):
            before = self._clocks.steady_ns()
            wall = self._clocks.wall_ns()
            after = self._clocks.steady_ns()
            readings.append((after - before, wall - (before + after) // 2))
        took, offset = min(readings)
        return offset, took


class Stalls:
    """Reads the kernel's counter of one kind of pressure; None if the kernel has none or denies access."""

    def __init__(self, file: Path, kind: str) -> None:
        self._file = file
        self._kind = kind
        self._known = self._total_us()

    @property
    def known(self) -> bool:
        return self._known is not None

    def share(self, seconds: float) -> float | None:
        """Returns the share of stalled time since the last call."""
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


class Delays:
    """Reads how long the processes of a control group waited for a processor, from the scheduler's counters.

    A process that starts or ends between two calls counts from or up to the call at which it was there.
    """

    def __init__(self, group: Path, processes: Path = PROCESSES) -> None:
        self._members = group / "cgroup.procs"
        self._processes = processes
        self._known = self._read()

    def mean_ms(self) -> float | None:
        """Returns the mean wait since the last call; None if nothing ran, or the kernel does not count it."""
        now, known = self._read(), self._known
        self._known = now
        waited_ns = turns = 0
        for thread, (waited, ran) in now.items():
            waited_before, ran_before = known.get(thread, (0, 0))
            waited_ns += max(waited - waited_before, 0)
            turns += max(ran - ran_before, 0)
        return round(waited_ns / turns / 1e6, 4) if turns else None

    def _read(self) -> dict[str, tuple[int, int]]:
        """Returns by thread how long it has waited, and how often it has run."""
        found = {}
        with suppress(OSError):
            for process in self._members.read_text().split():
                for file in self._processes.glob(f"{process}/task/*/schedstat"):
                    with suppress(OSError, ValueError):
                        _, waited, turns = map(int, file.read_bytes().split())
                        found[str(file)] = waited, turns
        return found


class Meter:
    """Collects measurements into one sample after another."""

    def __init__(
        self, group: Path | None = None, pressure: Path = PRESSURE, clocks: Clocks = MACHINE
    ) -> None:
        """``group``: the control group of the run's processes."""
        self._clocks = clocks
        self._guard = ClockGuard(clocks)
        self._waited = Stalls(pressure / "cpu", "some")
        self._group = Stalls(group / "cpu.pressure", "some") if group is not None else None
        self._delays = Delays(group) if group is not None else None
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
        """Returns the sample for the time since the last one."""
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
            group_delay_ms=self._delays.mean_ms() if self._delays is not None else None,
        )


def share_of_waiting(work_s: float) -> float:
    """Works for ``work_s`` of processor time, and returns the share of
    the elapsed time in which it had to wait.

    The work is longer than one time slice of the scheduler, which every process gets at once. Hashing
    releases Python's lock, so other threads of this process are not held up.
    """
    begun, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < work_s:
        hashlib.sha256(_CHUNK)
    took = time.monotonic() - begun
    return round(max(1.0 - (time.thread_time() - used) / took, 0.0), 4)


class HostProbe(threading.Thread):
    """Passes each sample to ``write`` as a line. If a write fails, that sample is lost.

    The first sample comes at once and covers no time: it marks that measuring has begun.
    """

    def __init__(self, write: Callable[[bytes], object], meter: Meter) -> None:
        super().__init__(name="host probe", daemon=True)
        self._write = write
        self._meter = meter
        self._ended = threading.Event()

    def run(self) -> None:
        self._write_sample()
        due = time.monotonic() + PERIOD_S
        full = time.monotonic() + SAMPLE_S
        while not self._ended.wait(max(due - time.monotonic(), 0.0)):
            now = time.monotonic()
            # Count the wake-ups that a late one skipped as late, too: otherwise a standstill would count only
            # once.
            for missed in range(min(int((now - due) / PERIOD_S) + 1, _MOST_MISSED)):
                self._meter.woke(now - due - missed * PERIOD_S)
            due = max(due + PERIOD_S, now + PERIOD_S / 2)
            if now >= full:
                self._write_sample()
                full = time.monotonic() + SAMPLE_S
                due = time.monotonic() + PERIOD_S
        self._write_sample()

    def _write_sample(self) -> None:
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
