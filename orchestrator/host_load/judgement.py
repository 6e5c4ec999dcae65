"""Judges whether a machine kept up with the run, from its probe's measurements; pure.

How the limits were chosen is in docs/radio.md, "Did the host keep up".
"""

from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

from node_agent.model.host_load import LATE_MS, LoadSample

LEAST_LATE = 5
"""So few late wake-ups are tolerated, however short the measurement: a standstill of 0.1 s."""


STRETCH_S = 10.0
"""How long a machine may be full at a time; a shorter burst counts only in the mean."""
FULL = 0.9
LONGER = 3.0
"""How many times as long as on average processes may wait in each ``STRETCH_S``."""
LEAST_MEASURED = 0.9
"""Share of the time that must be measured; the probe's last sample, about a second long, may be missing."""
_OWED_S = 1.5


class Limits(NamedTuple):
    """``delay_ms``: how long the run's own processes may wait for a processor each time, on average.
    ``waited``: share of the time in which processes of the machine may wait for one, where that is not known.
    ``late_ms``: all wake-ups but a share of ``late_share`` must come within that. ``memory``, ``disk``: share
    of the time in which everything may wait for these. ``clock_ms``: by how much the clock may be set while
    the query flows, all settings together. Each share or delay is a mean; in every ``STRETCH_S`` a share may
    be up to ``FULL``, a delay ``LONGER`` times as long."""

    delay_ms: float = 1.0
    waited: float = 0.5
    late_ms: float = 20.0
    late_share: float = 0.01
    memory: float = 0.1
    disk: float = 0.5
    clock_ms: float = 20.0

    @property
    def work(self) -> float:
        """The limit for the probe's own work, which waits half of its time as soon as one other process keeps
        each core busy; with two of them two thirds."""
        return self.waited + 0.1


LIMITS = Limits()


class Load(Struct, frozen=True):
    """What was measured over ``seconds``; None: not known on this machine. The shares are means of those in
    ``LoadSample``; ``worst`` has those of the worst ``STRETCH_S``. ``late``: wake-ups later than the
    limit."""

    seconds: float
    wake_ups: int
    late: int
    late_p50_ms: float
    late_p99_ms: float
    late_max_ms: float
    waited: float | None
    group_waited: float | None
    work_waited: float | None
    memory_stalled: float | None
    io_stalled: float | None
    worst: dict[str, float] = {}
    group_delay_ms: float | None = None


class ClockStep(Struct, frozen=True):
    """Somebody set the clock by ``size_ns``; it then showed about ``at_ns``."""

    size_ns: int
    at_ns: int


def summed_up(samples: Sequence[LoadSample], limits: Limits = LIMITS) -> Load | None:
    """Returns None if there are no samples."""
    seconds = sum(sample.seconds for sample in samples)
    if not seconds:
        return None
    counts = [sum(column) for column in zip(*map(_bins, samples), strict=True)]
    latest_ms = max(sample.latest_ms for sample in samples)

    shares = {name: _known(samples, share) for name, share in _SHARES.items()}
    means = {name: _mean(known) for name, known in shares.items()}
    worst = {name: _worst(known) for name, known in shares.items() if means[name] is not None}
    return Load(
        seconds=round(seconds, 3),
        wake_ups=sum(counts),
        late=sum(count for below, count in zip(LATE_MS, counts[1:], strict=True) if below >= limits.late_ms),
        late_p50_ms=_quantile(counts, 0.5, latest_ms),
        late_p99_ms=_quantile(counts, 0.99, latest_ms),
        late_max_ms=latest_ms,
        waited=means["waited"],
        group_waited=means["group_waited"],
        work_waited=means["work_waited"],
        memory_stalled=means["memory_stalled"],
        io_stalled=means["io_stalled"],
        worst=worst,
        group_delay_ms=means["group_delay_ms"],
    )


_SHARES: dict[str, Callable[[LoadSample], float | None]] = {
    "waited": lambda sample: sample.waited,
    "group_waited": lambda sample: sample.group_waited,
    "work_waited": lambda sample: sample.work_waited,
    "memory_stalled": lambda sample: sample.memory_stalled,
    "io_stalled": lambda sample: sample.io_stalled,
    "group_delay_ms": lambda sample: sample.group_delay_ms,
}
_Known = Sequence[tuple[float, float]]
"""Pairs: a share, and the seconds it covers."""


def _known(samples: Sequence[LoadSample], share: Callable[[LoadSample], float | None]) -> _Known:
    return [(value, each.seconds) for each in samples if (value := share(each)) is not None]


def _mean(known: _Known) -> float | None:
    seconds = sum(seconds for _, seconds in known)
    return round(sum(share * seconds for share, seconds in known) / seconds, 4) if seconds else None


def _worst(known: _Known) -> float:
    """Returns the largest mean over ``STRETCH_S``, or over all if that is shorter."""
    stretch: deque[tuple[float, float]] = deque()
    found: list[float] = []
    length = 0.0
    for share, seconds in known:
        stretch.append((share, seconds))
        length += seconds
        while length - stretch[0][1] >= STRETCH_S:
            length -= stretch.popleft()[1]
        if length >= STRETCH_S:
            found.append(_mean(stretch) or 0.0)
    return max(found) if found else _mean(known) or 0.0


def measured_doubts(who: str, measured_s: float, whole_s: float) -> list[str]:
    """Checks whether the samples cover enough of ``whole_s``."""
    missing_s = whole_s - measured_s
    if missing_s <= max((1.0 - LEAST_MEASURED) * whole_s, min(_OWED_S, whole_s / 2)):
        return []
    return [f"whether {who} kept up was measured for only {measured_s:.1f} of {whole_s:.1f} s"]


def doubts(who: str, load: Load | None, limits: Limits = LIMITS) -> list[str]:
    """Returns why programs on ``who`` were not as fast as they should be: one line, or none."""
    if load is None:
        return [f"it was not measured whether {who} kept up"]
    shares = [
        ("work waited for a processor", "work_waited", load.work_waited, limits.work),
        ("everything waited for memory", "memory_stalled", load.memory_stalled, limits.memory),
        ("everything waited for disks", "io_stalled", load.io_stalled, limits.disk),
    ]
    if load.group_delay_ms is None:
        shares.insert(0, ("processes waited for a processor", "waited", load.waited, limits.waited))
    found = _delay_doubts(load, limits)
    for what, name, share, limit in shares:
        worst, most = load.worst.get(name, 0.0), max(limit, FULL)
        if share is not None and share > limit:
            found.append(f"{what} {share:.0%} of the time (limit {limit:.0%})")
        elif worst > most:
            found.append(f"{what} {worst:.0%} of {STRETCH_S:g} s (limit {most:.0%})")
    if load.late > max(limits.late_share * load.wake_ups, LEAST_LATE):
        found.append(
            f"{1.0 - limits.late_share:.0%} of wake-ups came within {load.late_p99_ms:g} ms "
            f"(limit {limits.late_ms:g} ms)"
        )
    return [f"{who} was too busy: {', '.join(found)}"] if found else []


def _delay_doubts(load: Load, limits: Limits) -> list[str]:
    """Judges how long the run's own processes waited: others may use what they leave."""
    what = "the run's own processes waited for a processor for"
    worst, most = load.worst.get("group_delay_ms", 0.0), LONGER * limits.delay_ms
    if load.group_delay_ms is not None and load.group_delay_ms > limits.delay_ms:
        return [f"{what} {load.group_delay_ms:.1f} ms each time (limit {limits.delay_ms:g} ms)"]
    if worst > most:
        return [f"{what} {worst:.1f} ms each time in {STRETCH_S:g} s (limit {most:g} ms)"]
    return []


def steps(samples: Sequence[LoadSample]) -> list[ClockStep]:
    return [ClockStep(sample.step_ns, sample.t_ns) for sample in samples if sample.step_ns]


def step_doubts(who: str, found: Sequence[ClockStep], limits: Limits = LIMITS) -> list[str]:
    """Returns how the clock was set, if that makes times differ by more than the experiment allows."""
    if sum(abs(step.size_ns) for step in found) <= limits.clock_ms * 1e6:
        return []
    return [
        f"the clock of {who} was set {'forward' if step.size_ns > 0 else 'back'} by "
        f"{abs(step.size_ns) / 1e9:.3f} s at {_time_of_day(step.at_ns)} UTC"
        for step in found
    ]


def _time_of_day(t_ns: int) -> str:
    try:
        return f"{datetime.fromtimestamp(t_ns // 10**9, UTC):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):  # a node may send anything
        return f"{t_ns} ns"


def _bins(sample: LoadSample) -> tuple[int, ...]:
    """Returns the right number of bins, whatever a node sent."""
    wanted = len(LATE_MS) + 1
    return (*sample.late[:wanted], *(0 for _ in range(wanted - len(sample.late))))


def _quantile(counts: Sequence[int], share: float, latest_ms: float) -> float:
    """Returns the upper edge of the bin with the quantile, but no more than the largest value."""
    wanted, passed = share * sum(counts), 0
    for edge, count in zip(LATE_MS, counts, strict=False):
        passed += count
        if passed >= wanted:
            return min(edge, latest_ms)
    return latest_ms
