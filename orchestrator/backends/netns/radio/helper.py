"""The loop's helper, at normal priority: computes channels ahead of time, writes the record, obeys the owner.

It records the true links of a tick, and reports them to the owner, once the loop has applied them. Times in
the record are Unix time, as in the agents' telemetry.
"""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.radio import protocol, shared
from orchestrator.backends.netns.radio.config import RadioConfig
from orchestrator.backends.netns.radio.lateness import FINE_BINS, LatenessReport, histogram, quantile_us
from orchestrator.backends.netns.radio.loop import TICK_NS
from orchestrator.backends.netns.radio.models import AirModel, Seen
from orchestrator.backends.netns.radio.protocol import Command, Message
from orchestrator.backends.netns.radio.queue_drops import queue_drops
from orchestrator.backends.netns.radio.shared import Shared
from orchestrator.backends.netns.radio.stations import EVERY_TICKS, StationFiles
from orchestrator.errors import RoveError
from orchestrator.model.trace import Position, Trace
from orchestrator.radio.changes import UNCHANGED
from orchestrator.radio.truth import LinkUse, TruthRecorder

_SAMPLE_TICKS = 10
_STOP_TIMEOUT_S = 5.0
_READY_TIMEOUT_S = 10.0


class _Surveyed(NamedTuple):
    tick: int
    seen: Seen


class LoopDied(RoveError):
    """The process that carries the frames ended by itself."""


class RadioHelper:
    """``loop``: the pid of the real-time process, a child of this one."""

    def __init__(
        self,
        config: RadioConfig,
        model: AirModel,
        memory: Shared,
        first: Seen,
        first_tick: int,
        origin_ns: int,
        loop: int,
    ) -> None:
        self._config = config
        self._model = model
        self._trace = Trace(config.trace)
        self._memory = memory
        self._origin = origin_ns
        self._epoch = time.time_ns() - (time.monotonic_ns() - origin_ns)
        self._first_tick = first_tick
        self._loop = loop
        self._loop_ended = os.pidfd_open(loop)
        self._started_ns = time.monotonic_ns()
        self._cpu_at_start = time.process_time()
        self._recorder = TruthRecorder(config.place)
        self._stations: StationFiles | None = None
        if config.stations is not None:
            sensitivity = model.sensitivity_dbm()
            self._stations = StationFiles(Path(config.stations), config.addresses, sensitivity)
        self._counted = memory.counters()
        self._latest = first
        self._current = first
        self._reported: dict[str, dict[str, float]] = {}
        self._waiting: deque[_Surveyed] = deque([_Surveyed(first_tick, first)])
        self._input = b""
        self._changes = UNCHANGED
        self._changing: list[int] = []
        """Commands to answer when the loop has applied them."""
        self._moving_from: int | None = None if config.waits else 0
        """The tick at which nodes are at the beginning of their paths, and go."""
        self._starting: list[int] = []

    def serve(self) -> None:
        """Serves until told to stop, or the owner is gone."""
        self._await_loop()
        _say(Message(origin_ns=self._origin))
        while True:
            self._survey_ahead()
            self._record_applied()
            ready, _, _ = select.select([0, self._loop_ended], [], [], self._until_next_tick_s())
            if self._loop_ended in ready:
                raise LoopDied(f"the real-time loop ended ({_status(self._loop)})")
            if 0 in ready and not self._obey():
                return

    def _await_loop(self) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not self._memory.cells[shared.READY]:
            if select.select([self._loop_ended], [], [], 0.001)[0]:
                raise LoopDied(f"the real-time loop did not start ({_status(self._loop)})")
            if time.monotonic() > deadline:
                raise LoopDied(f"the real-time loop was not ready after {_READY_TIMEOUT_S:g} s")

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._origin

    def _until_next_tick_s(self) -> float:
        return (TICK_NS - self._now_ns() % TICK_NS) / 1e9

    # Channels

    def _survey_ahead(self) -> None:
        while self._memory.has_room():
            tick = self._first_tick + self._memory.cells[shared.PUBLISHED] + 1
            positions = self._positions(tick)
            # Skip a tick that is over already: the next one brings the channel up to date.
            missed = (tick + 1) * TICK_NS < self._now_ns()
            seen = self._latest if missed else self._model.look(positions, self._moved_s(tick), self._changes)
            self._memory.publish(b"" if seen is self._latest else seen.packed())
            self._latest = seen
            self._waiting.append(_Surveyed(tick, self._latest))

    def _positions(self, tick: int) -> Mapping[str, Position]:
        t = self._moved_s(tick)
        return self._changes.placed({node: self._trace.position(node, t) for node in self._config.nodes})

    def _moved_s(self, tick: int) -> float:
        """Returns for how long nodes have moved."""
        since = tick if self._moving_from is None else self._moving_from
        return max(0, tick - since) * TICK_NS / 1e9

    # The record

    def _record_applied(self) -> None:
        applied = self._first_tick + self._memory.cells[shared.APPLIED]
        while self._waiting and self._waiting[0].tick <= applied:
            tick, self._current = self._waiting.popleft()
            now = self._epoch + tick * TICK_NS
            self._recorder.links(now, self._current.links)
            if self._current.links != self._reported:
                self._reported = self._current.links
                _say(Message(now_ns=now, links=self._reported))
            if self._stations is not None and tick % EVERY_TICKS == 0:
                power_mw = self._model.power_mw(self._current)
                self._stations.write(self._memory.counters(), power_mw, tick * TICK_NS)
            if tick % _SAMPLE_TICKS == 0:
                self._recorder.positions(now, self._current.positions)
                self._record_deliveries(now)
            while self._changing and self._current.changes == self._changes:
                _say(Message(self._changing.pop(0), now))
            while self._starting and self._moving_from is not None and tick >= self._moving_from:
                _say(Message(self._starting.pop(0), self._epoch + self._moving_from * TICK_NS))

    def _record_deliveries(self, now_ns: int) -> None:
        counted, before = self._memory.counters(), self._counted
        self._counted = counted
        nodes, current = self._config.nodes, self._current
        uses = []
        for index, attempted in enumerate(counted.attempts):
            if attempted == before.attempts[index]:
                continue
            here, there = divmod(index, len(nodes))
            uses.append(
                LinkUse(
                    nodes[here],
                    nodes[there],
                    attempted - before.attempts[index],
                    counted.received[index] - before.received[index],
                    *current.expectation(here, there),
                )
            )
        self._recorder.deliveries(now_ns, uses)
        if self._config.contacts is None:  # links share no air
            self._recorder.airtimes(now_ns, dict(zip(nodes, counted.air_ns, strict=True)))

    # The owner

    def _obey(self) -> bool:
        """Handles the owner's commands. Returns False when there is nothing more to do."""
        data = os.read(0, 65536)
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            command = msgspec.json.decode(line, type=Command)
            match command.do:
                case protocol.REPORT:
                    _say(Message(command.id, time.time_ns(), report=self._report()))
                case protocol.LATENESS:
                    _say(Message(command.id, time.time_ns(), report=self._report(with_queues=False)))
                case protocol.CHANGE:
                    self._changes = command.changes
                    self._changing.append(command.id)
                case protocol.MOVE:
                    if self._moving_from is None:  # ticks up to the last published one stand still already
                        self._moving_from = self._first_tick + self._memory.cells[shared.PUBLISHED] + 1
                    self._starting.append(command.id)
                case protocol.STOP:
                    _say(Message(command.id, time.time_ns(), report=self._end()))
                    return False
                case unknown:
                    _say(Message(command.id, error=f"unknown command {unknown!r}"))
        if not data:
            self._end()
        return bool(data)

    def _end(self) -> LatenessReport:
        self._memory.cells[shared.STOP] = 1
        if not select.select([self._loop_ended], [], [], _STOP_TIMEOUT_S)[0]:
            os.kill(self._loop, signal.SIGKILL)
        os.waitpid(self._loop, 0)
        self._record_applied()
        self._record_deliveries(self._epoch + self._memory.cells[shared.NOW_NS])
        self._recorder.close()
        report = self._report()
        _write_whole(self._config.place / "lateness.json", msgspec.json.encode(report))
        return report

    def _report(self, with_queues: bool = True) -> LatenessReport:
        counters = self._memory.counters()
        cells, bins = counters.scalars, counters.lateness
        deliveries = sum(bins)
        late = sum(bins[FINE_BINS:])
        max_us = max(cells[shared.LATENESS_MAX_NS], 0) / 1e3
        lag = cells[shared.LAG_MAX_NS]
        return LatenessReport(
            deliveries=deliveries,
            late=late,
            late_ratio=late / deliveries if deliveries else 0.0,
            # A bin may end above the latest delivery in it.
            p50_us=min(quantile_us(bins, 0.5), max_us),
            p99_us=min(quantile_us(bins, 0.99), max_us),
            max_us=max_us,
            channel_updates=cells[shared.APPLIED],
            channel_lag_max_ms=lag / 1e6,
            channel_fell_behind=lag > TICK_NS,
            scheduling="fifo" if cells[shared.FIFO] else "normal",
            wall_s=(time.monotonic_ns() - self._started_ns) / 1e9,
            loop_cpu_s=cells[shared.CPU_NS] / 1e9,
            helper_cpu_s=time.process_time() - self._cpu_at_start,
            frames={
                "acknowledged": cells[shared.ACKNOWLEDGED],
                "broadcasts": cells[shared.BROADCASTS],
                "given_up": cells[shared.GIVEN_UP],
                "timeouts": cells[shared.TIMEOUTS],
                "unknown_destination": cells[shared.UNKNOWN_DESTINATION],
                "refused_by_device": cells[shared.REFUSED],
            },
            queue_drops=_drops(self._config.mark) if with_queues else {},
            histogram=histogram(bins),
        )


def _say(message: Message) -> None:
    data = memoryview(msgspec.json.encode(message) + b"\n")
    while data:
        data = data[os.write(1, data) :]


def _write_whole(path: Path, data: bytes) -> None:
    """Writes the file atomically."""
    draft = path.with_suffix(".tmp")
    draft.write_bytes(data + b"\n")
    draft.replace(path)


def _drops(mark: Mark) -> dict[str, int]:
    """Returns nothing if the network is gone already."""
    with suppress(OSError, RoveError):
        return queue_drops(mark)
    return {}


def _status(pid: int) -> str:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return f"exit status {code}" if code >= 0 else f"signal {-code}"
