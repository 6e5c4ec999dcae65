"""What the probes of a run wrote down, read back for the time that was measured, and judged."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from node_agent.model.checked import Refused
from node_agent.model.host_load import FILE, LONGEST_LINE, LoadSample, read_sample
from orchestrator.clocks.correction import Pieces, ahead_ns
from orchestrator.host_load import judgement
from orchestrator.host_load.judgement import ClockStep, Limits, Load
from orchestrator.lifecycle.run_directory import RunDirectory
from orchestrator.spec.experiment import Experiment

_MOST_SAMPLES = 7 * 24 * 3600
"""A week of them."""


class Window(Struct, frozen=True):
    """By the orchestrator's clock: the query flows from ``flow_ns`` on; what counts lies between the two
    others."""

    flow_ns: int
    from_ns: int
    until_ns: int


def after(window: Window | None, from_ns: int, until_ns: int) -> Window:
    """With the next stretch of the same run, which is what counts if no other follows."""
    return Window(from_ns if window is None else window.flow_ns, from_ns, until_ns)


class Measured(Struct, frozen=True):
    """Of one machine. ``load`` is None if nothing was measured in the window."""

    who: str
    load: Load | None
    steps: tuple[ClockStep, ...]
    doubts: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        load: dict[str, Any] = to_builtins(self.load) if self.load is not None else {}
        return {**load, **({"clock_steps": to_builtins(self.steps)} if self.steps else {})}


def limits_of(experiment: Experiment) -> Limits:
    return Limits(waited=experiment.load.waited, late_ms=experiment.load.late * 1e3)


def of_host(directory: Path, who: str, window: Window, limits: Limits, clock: Pieces = ()) -> Measured:
    """The machine that all nodes of the run are on. ``clock``: its own, if that is not the orchestrator's."""
    return _measured(who, directory / FILE, window, limits, clock)


def of_nodes(
    directory: Path, nodes: Iterable[str], window: Window, limits: Limits, clocks: Mapping[str, Pieces]
) -> list[Measured]:
    """Machines of their own, whose records are here."""
    places = RunDirectory(directory).nodes
    return [_measured(node, places / node / FILE, window, limits, clocks.get(node, ())) for node in nodes]


def _measured(who: str, file: Path, window: Window, limits: Limits, clock: Pieces) -> Measured:
    samples = _read(file)
    times = [sample.t_ns - ahead_ns(clock, sample.t_ns) for sample in samples]
    flow = _first_from(times, window.flow_ns)
    begin = _first_from(times, window.from_ns)
    # By their order in the file: a clock that was set back must not hide what came after.
    end = max((at + 1 for at in range(begin, len(times)) if times[at] <= window.until_ns), default=begin)
    # The first of them began before the window did.
    chosen = samples[begin + 1 : end] or samples[begin : max(end, begin + 1)]
    load, steps = judgement.summed_up(chosen, limits), judgement.steps(samples[flow:])
    doubts = (*judgement.doubts(who, load, limits), *judgement.step_doubts(who, steps))
    return Measured(who, load, tuple(steps), doubts)


def _first_from(times: Sequence[int], t_ns: int) -> int:
    return next((at for at, time in enumerate(times) if time >= t_ns), len(times))


def _read(file: Path) -> list[LoadSample]:
    """What cannot be read is left out: a node's disk may have been full."""
    samples: list[LoadSample] = []
    try:
        with file.open("rb") as lines:
            while len(samples) < _MOST_SAMPLES and (line := lines.readline(LONGEST_LINE)):
                try:
                    samples.append(read_sample(line))
                except Refused:
                    continue
    except OSError:
        return []
    return samples
