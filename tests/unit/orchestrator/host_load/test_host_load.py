"""Whether a machine kept up: what the probe measures, and the judgement on it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.host.load_probe import STEP_NS, ClockGuard, Clocks, Delays, HostProbe, Meter, share_of_waiting
from node_agent.model.checked import Refused
from node_agent.model.host_load import FILE, LATE_MS, LoadSample, late_bin, read_sample
from orchestrator.backends.netns.backend import NetnsBackend
from orchestrator.clocks.book import NodeClock, When
from orchestrator.clocks.correction import pieces_of
from orchestrator.clocks.offsets import Offset
from orchestrator.host_load.files import Window, after, of_host, of_nodes
from orchestrator.host_load.judgement import LIMITS, Limits, Load, doubts, step_doubts, steps, summed_up
from orchestrator.host_load.local import HostWatch
from orchestrator.runs.journal import Journal
from tests.unit.specs import experiment, planned

SECOND = 10**9
NOON_NS = 1_790_000_000 * SECOND


def sample(
    second: int = 0, waited: float | None = 0.15, late: dict[float, int] | None = None, step_ns: int = 0
) -> LoadSample:
    """Fifty wake-ups; ``late`` says how many of them came so many milliseconds late."""
    counts = [0] * (len(LATE_MS) + 1)
    for late_ms, count in (late or {}).items():
        counts[late_bin(late_ms)] += count
    counts[0] += 50 - sum(counts)
    latest = max(late or {0.1: 1})
    return LoadSample(NOON_NS + second * SECOND, 1.0, tuple(counts), latest, waited, step_ns=step_ns)


def summary(*samples: LoadSample) -> Load:
    load = summed_up(samples)
    assert load is not None
    return load


# The judgement


def test_a_machine_that_had_time_to_spare_raises_no_doubt() -> None:
    # As measured with 25 nodes and faces in namespaces on two cores, a third busy.
    load = summary(*(sample(second, 0.23, {7.0: 1, 14.0: 1}) for second in range(40)))
    assert doubts("this machine", load) == []


def test_a_saturated_machine_is_doubted_although_nothing_else_was_late() -> None:
    # Run queue 15 to 26 on two cores, 0 to 1 % idle: somebody waits all the time, sleepers hardly do.
    load = summary(*(sample(second, 0.99, {4.0: 20}) for second in range(40)))
    (doubt,) = doubts("CORE's host", load)
    assert doubt == "CORE's host was too busy: processes waited for a processor 99% of the time (limit 50%)"


def test_a_machine_that_stands_still_now_and_then_is_doubted() -> None:
    load = summary(*(sample(second, 0.1, {48.0: 2}) for second in range(40)))
    (doubt,) = doubts("n1", load)
    assert doubt == "n1 was too busy: 99% of wake-ups came within 48 ms (limit 20 ms)"


def test_one_accident_in_a_short_measurement_is_none() -> None:
    assert doubts("n1", summary(sample(0, 0.1, {80.0: 4}), sample(1))) == []


def test_others_may_wait_if_the_runs_own_processes_do_not() -> None:
    crowded = msgspec.structs.replace(sample(), waited=0.99, group_waited=0.2, group_delay_ms=0.5)
    assert doubts("n1", summary(crowded)) == []


def test_long_waits_for_ten_seconds_are_doubted_though_the_mean_is_short() -> None:
    calm, held_up = (msgspec.structs.replace(sample(), group_delay_ms=ms) for ms in (0.1, 4.0))
    (doubt,) = doubts("n1", summary(*[calm] * 100, *[held_up] * 10))
    assert "waited for a processor for 4.0 ms each time in 10 s (limit 3 ms)" in doubt


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"group_delay_ms": 1.7}, "the run's own processes waited for a processor for 1.7 ms each time"),
        ({"waited": None, "work_waited": 0.8}, "work waited for a processor 80%"),
        ({"memory_stalled": 0.3}, "everything waited for memory 30%"),
        ({"io_stalled": 0.6}, "everything waited for disks 60%"),
    ],
)
def test_each_kind_of_waiting_counts(changes: dict[str, float | None], words: str) -> None:
    (doubt,) = doubts("n1", summary(msgspec.structs.replace(sample(), **changes)))
    assert words in doubt


def test_what_nobody_measured_is_doubted() -> None:
    assert summed_up([]) is None
    assert doubts("n1", None) == ["it was not measured whether n1 kept up"]


def test_quantiles_are_the_upper_edges_of_bins_but_never_beyond_the_latest() -> None:
    load = summary(sample(0, late={1.5: 24, 17.0: 2}), sample(1, late={1.5: 24}))
    assert (load.wake_ups, load.late) == (100, 0)
    assert (load.late_p50_ms, load.late_p99_ms, load.late_max_ms) == (0.5, 17.0, 17.0)


# What is read back


def written(file: Path, samples: list[LoadSample]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in samples))


def window(begin: int, end: int) -> Window:
    return after(None, NOON_NS + begin * SECOND, NOON_NS + end * SECOND)


def test_only_the_measured_time_counts(tmp_path: Path) -> None:
    busy_at_first = [sample(second, 1.0 if second < 10 else 0.1) for second in range(30)]
    written(tmp_path / FILE, busy_at_first)
    warm_up = window(2, 10)
    whole = after(warm_up, warm_up.until_ns, NOON_NS + 25 * SECOND)
    assert whole.flow_ns == warm_up.flow_ns
    load = of_host(tmp_path, "this machine", whole, LIMITS).load
    assert load is not None
    assert (load.seconds, load.waited) == (15.0, 0.1)
    assert of_host(tmp_path, "this machine", warm_up, LIMITS).doubts


def test_a_node_is_believed_about_itself_in_its_own_time(tmp_path: Path) -> None:
    hour = 3600
    ahead = [sample(hour + second, 1.0 if 5 <= second <= 15 else 0.0) for second in range(30)]
    written(tmp_path / "nodes/n1" / FILE, ahead)
    clock = NodeClock((Offset(NOON_NS, hour * SECOND, 1),), frozenset({When.BEFORE}))
    clocks = {"n1": pieces_of(clock)}
    (measured,) = of_nodes(tmp_path, ["n1"], window(5, 15), LIMITS, clocks)
    assert measured.doubts == (
        "n1 was too busy: processes waited for a processor 100% of the time (limit 50%)",
    )
    (measured,) = of_nodes(tmp_path, ["n1"], window(17, 28), LIMITS, clocks)
    assert measured.doubts == ()


def test_nonsense_is_left_out_and_nothing_at_all_is_told(tmp_path: Path) -> None:
    file = tmp_path / FILE
    good = msgspec.json.encode(sample(3)) + b"\n"
    file.write_bytes(b"[" * 100_000 + b"\n" + b'{"t_ns": 1e300}\n' + good + b'{"t_ns": 17')
    load = of_host(tmp_path, "n1", window(0, 9), LIMITS).load
    assert load is not None and load.wake_ups == 50
    assert of_host(tmp_path / "nowhere", "n1", window(0, 9), LIMITS).doubts == (
        "it was not measured whether n1 kept up",
    )
    with pytest.raises(Refused):
        read_sample(b'{"t_ns": 99999999999999999999, "seconds": 1, "late": [], "latest_ms": 0}')


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": 1e308},
        {"latest_ms": 1e300},
        {"waited": 1.5},
        {"group_waited": 1e308},
        {"late": [2**62]},
        {"seconds": -1.0},
    ],
)
def test_no_node_makes_figures_that_no_file_can_hold(tmp_path: Path, change: dict[str, Any]) -> None:
    line = {**msgspec.to_builtins(sample(3)), **change}
    with pytest.raises(Refused):
        read_sample(msgspec.json.encode(line))


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([sample(0), sample(1)], "measured for only 1.0 of 120.0 s"),  # the probe died
        ([sample(300)], "it was not measured"),
        ([sample(s) for s in range(121) if not 50 <= s < 70], "measured for only 100.0 of 120.0 s"),
        ([sample(2)] * 200, "measured for only 1.0 of 120.0 s"),
        ([sample(s, 1.0 if s <= 60 else 0.0) for s in range(121)], "100% of 10 s (limit 90%)"),
        ([sample(s, 1.0 if 40 < s <= 50 else 0.1) for s in range(121)], "100% of 10 s (limit 90%)"),
    ],
)
def test_a_machine_is_doubted_for_what_was_not_measured_and_for_its_worst_stretch(
    tmp_path: Path, samples: list[LoadSample], words: str
) -> None:
    written(tmp_path / FILE, samples)
    (doubt,) = of_host(tmp_path, "this machine", window(0, 120), LIMITS).doubts
    assert words in doubt


@pytest.mark.parametrize(
    ("samples", "begin", "end"),
    [
        ([sample(s, 1.0 if 40 < s <= 48 else 0.1) for s in range(121)], 0, 120),  # a burst
        ([sample(s) for s in range(3)], 0, 3),  # the last sample is still owed
        ([sample(s) for s in range(10)], 4.3, 5.8),
        ([sample(s) for s in range(10)], 4.3, 4.5),
    ],
)
def test_short_bursts_and_short_windows_are_not_doubted(
    tmp_path: Path, samples: list[LoadSample], begin: float, end: float
) -> None:
    written(tmp_path / FILE, samples)
    during = after(None, NOON_NS + round(begin * SECOND), NOON_NS + round(end * SECOND))
    assert of_host(tmp_path, "this machine", during, LIMITS).doubts == ()


# The clock


class FakeClock:
    def __init__(self) -> None:
        self.steady, self.wall = 0, NOON_NS

    def passes(self, ns: int) -> None:
        self.steady += ns
        self.wall += ns

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall, lambda: self.steady)


@pytest.mark.parametrize("set_by", [3 * SECOND + SECOND // 5, -SECOND, STEP_NS + 1])
def test_a_clock_that_is_set_is_noticed_once(set_by: int) -> None:
    clock = FakeClock()
    guard = ClockGuard(clock.clocks)
    found = []
    for second in range(10):
        clock.passes(SECOND)
        if second == 4:
            clock.wall += set_by
        found.append(guard.step_ns())
    assert [step for step in found if step] == [set_by]


def test_small_corrections_of_a_clock_are_no_steps() -> None:
    clock = FakeClock()
    guard = ClockGuard(clock.clocks)
    clock.passes(SECOND)
    clock.wall += STEP_NS // 2
    assert guard.step_ns() == 0


def test_a_reading_that_was_interrupted_is_no_step() -> None:
    """The process may be off the processor between two clocks."""
    clock = FakeClock()
    guard = ClockGuard(clock.clocks)

    def late_wall() -> int:
        clock.passes(SECOND)
        return clock.wall

    interrupted = ClockGuard(Clocks(late_wall, lambda: clock.steady))
    assert guard.step_ns() == 0
    assert interrupted.step_ns() == 0


def test_a_clock_set_during_a_run_is_a_doubt_with_its_size_and_time(tmp_path: Path) -> None:
    clock = FakeClock()
    meter = Meter(clocks=clock.clocks)
    samples = []
    for second in range(12):
        clock.passes(SECOND)
        if second in (1, 7):
            clock.wall += 3_200_000_000
        samples.append(msgspec.structs.replace(meter.sample(), seconds=1.0, waited=0.0))
    written(tmp_path / FILE, samples)
    measured = of_host(tmp_path, "this machine", window(6, 20), LIMITS)
    # What happened before the query flowed harms nobody.
    then = time.strftime("%H:%M:%S", time.gmtime(samples[7].t_ns // SECOND))
    assert measured.doubts == (f"the clock of this machine was set forward by 3.200 s at {then} UTC",)
    assert measured.document()["clock_steps"][0]["size_ns"] == 3_200_000_000


def test_a_clock_set_during_a_run_in_namespaces_makes_it_invalid(tmp_path: Path) -> None:
    """With the samples of a probe whose clock somebody sets: nobody sets the clock of this machine for it."""
    meant = experiment(backend="netns", routing={"protocol": "ground_truth"})
    with Journal.create(tmp_path / "journal.jsonl") as journal:
        backend = NetnsBackend(planned(meant), "run", tmp_path, journal)
        assert list(backend.doubts()) == []
        backend._load.flowed(NOON_NS, NOON_NS + 8 * SECOND)
        written(tmp_path / FILE, [sample(second, step_ns=-SECOND * (second == 4)) for second in range(10)])
        (doubt,) = backend.doubts()
    assert doubt.startswith("the clock of this machine was set back by 1.000 s at ")


def test_small_settings_of_a_clock_count_together(tmp_path: Path) -> None:
    """A virtual machine's host may correct its clock by 10 ms every two seconds."""

    def told(times: int, limits: Limits) -> tuple[str, ...]:
        steps = [SECOND // 100 if at % 2 and at < 2 * times else 0 for at in range(20)]
        (tmp_path / FILE).unlink(missing_ok=True)
        written(tmp_path / FILE, [sample(at, step_ns=step) for at, step in enumerate(steps)])
        return of_host(tmp_path, "this machine", window(0, 18), limits).doubts

    assert told(2, LIMITS) == ()
    assert len(told(3, LIMITS)) == 3
    assert told(9, LIMITS._replace(clock_ms=90.0)) == ()


def test_a_clock_that_was_set_back_hides_nothing(tmp_path: Path) -> None:
    samples = [sample(second) for second in range(10)]
    samples += [
        sample(second - 3600, 1.0, step_ns=-3600 * SECOND if second == 10 else 0) for second in range(10, 20)
    ]
    written(tmp_path / FILE, samples)
    told = of_host(tmp_path, "n1", window(2, 20), LIMITS).doubts
    assert any("set back by 3600.000 s" in doubt for doubt in told)
    assert any("too busy" in doubt for doubt in told)


def test_a_step_back_in_the_first_sample_of_a_busy_machine_is_told(tmp_path: Path) -> None:
    """It shows a time from before the flow, although it was taken after its beginning."""
    back = [sample(0), sample(1)]
    back += [sample(second - 1, 1.0, step_ns=-SECOND if second == 2 else 0) for second in range(2, 8)]
    written(tmp_path / FILE, back)
    flow_ns = NOON_NS + SECOND + SECOND // 2
    told = of_host(tmp_path, "n1", after(None, flow_ns, flow_ns + 4 * SECOND), LIMITS).doubts
    assert any("set back by 1.000 s" in doubt for doubt in told)
    assert any("too busy" in doubt for doubt in told)


def test_a_time_that_no_calendar_knows_can_still_be_told() -> None:
    told = step_doubts("n1", steps([msgspec.structs.replace(sample(step_ns=SECOND), t_ns=2**63 - 1)]))
    assert len(told) == 1


# The probe


def test_a_machine_without_pressure_information_is_measured_by_work(tmp_path: Path) -> None:
    meter = Meter(pressure=tmp_path)
    taken = meter.sample()
    assert taken.waited is None
    assert taken.work_waited is not None and 0.0 <= taken.work_waited <= 1.0


def test_pressure_is_the_share_of_the_time_since_the_last_look(tmp_path: Path) -> None:
    def tell(total: int) -> None:
        line = f"avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n"
        for name in ("cpu", "memory", "io"):
            (tmp_path / name).write_text(f"some {line}full {line}")
        (tmp_path / "cpu.pressure").write_text(f"some {line}full {line}")

    tell(1000)
    meter = Meter(group=tmp_path, pressure=tmp_path)
    tell(1000 + 10**9)
    taken = meter.sample()
    assert (taken.waited, taken.group_waited, taken.memory_stalled, taken.io_stalled) == (1.0, 1.0, 1.0, 1.0)
    assert taken.work_waited is None
    assert meter.sample().waited == 0.0


def test_waits_of_a_group_are_counted_since_the_last_look(tmp_path: Path) -> None:
    def tell(thread: str, waited_ms: int, turns: int) -> None:
        file = tmp_path / thread.split("-")[0] / "task" / thread / "schedstat"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"123456789 {waited_ms * 10**6} {turns}\n")

    (tmp_path / "cgroup.procs").write_text("7\n8\n9\n")  # 9 has just ended
    tell("7", 100, 1000)
    tell("8", 100, 1000)
    delays = Delays(tmp_path, processes=tmp_path)
    assert delays.mean_ms() is None  # nobody ran
    tell("7", 101, 1010)
    tell("8-thread", 3, 10)  # a new one
    assert delays.mean_ms() == pytest.approx(4 / 20)
    assert Delays(tmp_path / "gone").mean_ms() is None


def test_the_probe_writes_a_sample_a_second_and_survives_a_full_disk() -> None:
    lines: list[bytes] = []

    def write(line: bytes) -> None:
        lines.append(line)
        raise OSError(28, "No space left on device")

    probe = HostProbe(write, Meter())
    probe.start()
    deadline = time.monotonic() + 20
    while len(lines) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    probe.stop()
    assert not probe.is_alive()
    assert len(lines) >= 2
    taken = read_sample(lines[-1])
    assert sum(sum(read_sample(line).late) for line in lines) > 0
    assert abs(taken.t_ns - time.time_ns()) < 30 * SECOND


def test_a_watch_has_begun_when_its_probe_measures(tmp_path: Path) -> None:
    async def watch() -> None:
        watch = HostWatch.start(tmp_path, {}, None)
        try:
            await watch.begun()
            assert (tmp_path / FILE).stat().st_size
        finally:
            await watch.close()

    asyncio.run(watch())


def test_work_takes_no_negative_time() -> None:
    assert 0.0 <= share_of_waiting(0.002) <= 1.0
