"""Reads the samples that a run's probes wrote, for the measured time, and judges them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, to_builtins

from node_agent.model.checked import Refused
from node_agent.model.host_load import FILE, LONGEST_LINE, LoadSample, read_sample
from node_agent.telemetry.segment_files import open_regular
from orchestrator.clocks.correction import Pieces, ahead_ns
from orchestrator.host_load import judgement
from orchestrator.host_load.judgement import ClockStep, Limits, Load
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.experiment import Experiment

_MOST_SAMPLES = 7 * 24 * 3600
"""One week."""


class Window(Struct, frozen=True):
    """In the orchestrator's time: the query flows from ``flow_ns`` on;
    what counts is between the other two."""

    flow_ns: int
    from_ns: int
    until_ns: int


def after(window: Window | None, from_ns: int, until_ns: int) -> Window:
    """Adds the next stretch of the same run; the last one counts."""
    return Window(from_ns if window is None else window.flow_ns, from_ns, until_ns)


class Measured(Struct, frozen=True):
    """One machine's load. ``load`` is None if nothing was measured in the window."""

    who: str
    load: Load | None
    steps: tuple[ClockStep, ...]
    doubts: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        load: dict[str, Any] = to_builtins(self.load) if self.load is not None else {}
        return {**load, **({"clock_steps": to_builtins(self.steps)} if self.steps else {})}


def limits_of(experiment: Experiment) -> Limits:
    load = experiment.load
    clock_ms = experiment.clocks.uncertainty * 1e3
    return Limits(delay_ms=load.delay * 1e3, waited=load.waited, late_ms=load.late * 1e3, clock_ms=clock_ms)


def of_host(directory: Path, who: str, window: Window, limits: Limits, clock: Pieces = ()) -> Measured:
    """The machine that runs all nodes. ``clock``: its own, if that is not the orchestrator's."""
    return _measured(who, directory / FILE, window, limits, clock)


def of_nodes(
    directory: Path, nodes: Iterable[str], window: Window, limits: Limits, clocks: Mapping[str, Pieces]
) -> list[Measured]:
    """The nodes' own machines, whose records are here."""
    places = RunDirectory(directory).nodes
    return [_measured(node, places / node / FILE, window, limits, clocks.get(node, ())) for node in nodes]


def _measured(who: str, file: Path, window: Window, limits: Limits, clock: Pieces) -> Measured:
    samples = [_Timed(sample, sample.t_ns - ahead_ns(clock, sample.t_ns)) for sample in read_samples(file)]
    steps = judgement.steps([each.sample for each in samples[_first_from(samples, window.flow_ns) :]])
    set_too_far = judgement.step_doubts(who, steps, limits)
    if set_too_far:
        # Times before and after do not fit together, nor to the window. The run is invalid anyway.
        chosen, missing = _by_order(samples, window), []
    else:
        chosen = _within(samples, window)
        measured_s = _covered_ns(samples, window) / 1e9
        whole_s = (window.until_ns - window.from_ns) / 1e9
        missing = judgement.measured_doubts(who, measured_s, whole_s) if chosen else []
    load = judgement.summed_up(chosen, limits)
    doubts = (*judgement.doubts(who, load, limits), *missing, *set_too_far)
    return Measured(who, load, tuple(steps), doubts)


class _Timed(NamedTuple):
    """A sample, and when it ended in the orchestrator's time."""

    sample: LoadSample
    end_ns: int

    @property
    def begin_ns(self) -> int:
        return self.end_ns - round(self.sample.seconds * 1e9)

    @property
    def latest_ns(self) -> int:
        """If the clock was set back within the sample, it had shown a later time before."""
        return max(self.end_ns, self.end_ns - self.sample.step_ns)


def _first_from(samples: Sequence[_Timed], t_ns: int) -> int:
    return next((at for at, each in enumerate(samples) if each.latest_ns >= t_ns), len(samples))


def _within(samples: Sequence[_Timed], window: Window) -> list[LoadSample]:
    """Returns samples entirely in the window; if they are too few,
    because it is short, those that overlap it."""
    whole = [s for s in samples if window.from_ns <= s.begin_ns and s.end_ns <= window.until_ns]
    touching = [s for s in samples if window.from_ns < s.end_ns and s.begin_ns < window.until_ns]
    enough = 2 * _covered_ns(whole, window) >= _covered_ns(touching, window)
    return [each.sample for each in (whole if enough else touching)]


def _by_order(samples: Sequence[_Timed], window: Window) -> list[LoadSample]:
    """Selects by order in the file: a clock that was set back must not hide later samples."""
    begin = _first_from(samples, window.from_ns)
    inside = (at + 1 for at in range(begin, len(samples)) if samples[at].end_ns <= window.until_ns)
    end = max(inside, default=begin + 1)
    # The first of them began before the window did.
    return [each.sample for each in samples[begin + 1 : end] or samples[begin:end]]


def _covered_ns(samples: Iterable[_Timed], window: Window) -> int:
    """Returns how much of the window the samples cover together."""
    covered, known_until = 0, window.from_ns
    for each in sorted(samples, key=lambda each: each.begin_ns):
        end = min(each.end_ns, window.until_ns)
        covered += max(end - max(each.begin_ns, known_until), 0)
        known_until = max(known_until, end)
    return covered


def read_samples(file: Path) -> list[LoadSample]:
    """Leaves out lines that cannot be read: a node's disk may have been full."""
    samples: list[LoadSample] = []
    try:
        with open_regular(file) as lines:
            while len(samples) < _MOST_SAMPLES and (line := lines.readline(LONGEST_LINE)):
                try:
                    samples.append(read_sample(line))
                except Refused:
                    continue
    except OSError:
        return []
    return samples
