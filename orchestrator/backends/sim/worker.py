"""The simulator process: `python -m orchestrator.backends.sim.worker RUN_DIRECTORY RUN_ID`.

It reads commands from standard input and writes answers to standard output. It ends when its input ends, and
on Linux is killed when the orchestrator ends, even in code that never returns. What operators of a query
print goes to ``simulator.log`` in the run's directory.
"""

import ctypes
import gc
import os
import selectors
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from orchestrator.backends.sim.protocol import Command, Reply
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.errors import BadInput
from orchestrator.planning.load import load_checked
from orchestrator.planning.planned import PlannedRun, recorded_run
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import apps_in
from orchestrator.runs.run_directory import RunDirectory

SLICE_NS = 200_000_000
PRINTED = "simulator.log"
_PR_SET_PDEATHSIG = 1


class Worker:
    def __init__(self, simulation: Simulation, commands: int, answers: int) -> None:
        """``commands`` and ``answers`` are file descriptors, which the worker owns from here on."""
        self._simulation = simulation
        # Unbuffered: the selector would not see a command that was read ahead.
        self._input = open(commands, "rb", buffering=0)  # noqa: SIM115
        self._output = open(answers, "wb")  # noqa: SIM115
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(self._input, selectors.EVENT_READ)

    def serve(self) -> None:
        while line := self._input.readline():
            command = msgspec.json.decode(line, type=Command)
            try:
                self._handle(command)
            except Exception as error:
                self._answer(command, error=f"{type(error).__name__}: {error}")
                raise

    def _handle(self, command: Command) -> None:
        simulation = self._simulation
        match command.do:
            case "up":
                self._answer(command, done=True, outcomes=simulation.up())
            case "converge":
                outcomes = simulation.converge()
                self._answer(command, done=True, outcomes=outcomes, settled_s=simulation.settled_s)
            case "advance":
                self._advance(command)
                self._answer(command, done=True, outcomes=simulation.outcomes())
            case "stop":
                self._answer(command, done=True, outcomes=simulation.stop())
            case "collect":
                self._answer(command, done=True, outcomes=simulation.outcomes())
            case "interrupt":
                pass  # the advance it was for has ended already
            case unknown:
                raise ValueError(f"unknown command {unknown!r}")

    def _advance(self, command: Command) -> None:
        """Advances in slices, so that it notices an interrupt, or the orchestrator's death, between two of
        them."""
        start = self._simulation.now_ns()
        length = round(command.seconds * 1e9)
        self._simulation.open_sources()
        while (done := self._simulation.now_ns() - start) < length:
            if self._waiting.select(timeout=0):
                return
            self._simulation.advance(min(SLICE_NS, length - done))
            self._answer(command, progress=(self._simulation.now_ns() - start) / length)

    def _answer(self, command: Command, **fields: object) -> None:
        reply = Reply(command.id, self._simulation.now_ns(), **fields)  # type: ignore[arg-type]
        self._output.write(msgspec.json.encode(reply) + b"\n")
        self._output.flush()


def main() -> None:
    die_with_parent()
    directory, run_id = Path(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the orchestrator decides when to stop
    commands, answers = os.dup(0), os.dup(1)
    printed = directory / PRINTED
    _keep_standard_streams_apart(printed)
    run = _planned(RunDirectory(directory))
    look_for_garbage_rarely()
    try:
        Worker(Simulation(run, run_id, directory), commands, answers).serve()
    finally:
        sys.stdout.flush()
        if not printed.stat().st_size:
            printed.unlink()


def die_with_parent() -> None:
    """Asks the kernel to kill this process when its parent ends; does nothing on other systems than Linux."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)


def _planned(directory: RunDirectory) -> PlannedRun:
    """Reads the run as the orchestrator has planned and recorded it."""
    run = recorded_run(load_checked(directory.spec), apps_in(read_object(directory.manifest)))
    if run is None:
        raise BadInput(f"{directory.manifest} does not say how the run is planned")
    return run


def look_for_garbage_rarely() -> None:
    """Runs garbage collection less often: it costs 5 % of the time, and a simulation makes few cycles."""
    gc.freeze()
    gc.set_threshold(20_000)


def _keep_standard_streams_apart(printed: Path) -> None:
    """Separates the protocol from standard input and output, which a query's own code may use."""
    for number, path, mode in ((0, Path(os.devnull), "rb"), (1, printed, "wb")):
        with path.open(mode) as file:
            os.dup2(file.fileno(), number)


if __name__ == "__main__":
    main()
