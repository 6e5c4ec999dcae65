"""One drill: its own folder, a seeded choice, a deadline, the real `rove`, and the problems found."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.cli.output import rove_command
from orchestrator.runs import processes, run_directory
from orchestrator.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from tests.ssh.lab import Lab

ROOT = Path(__file__).parents[2]
DEADLINE_S = 240.0
NODES = ("a", "b", "c")
RUN_ID = "r1"
EXPERIMENT: dict[str, Any] = {
    "name": "drill",
    "topology": {
        "name": "three",
        "nodes": list(NODES),
        "area": "500 m x 100 m",
        "mobility": {"model": "static", "grid": {"columns": 3, "spacing": "150 m"}},
        "radio": {"model": "disc", "range": "200 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
    },
    "backend": "netns",
    "routing": {"protocol": "olsr", "hello": "300 ms", "tc": "300 ms"},
    "query": {
        "operators": {
            "camera": {"kind": "synthetic_source", "rate": "20 fps", "payload": "200 B"},
            "work": {"kind": "work", "after": "camera", "cpu": "0.1 ms"},
            "screen": {"kind": "sink", "after": "work"},
        }
    },
    "placement": {"policy": "explicit", "nodes": {"camera": ["a"], "work": ["b"], "screen": ["c"]}},
    "warmup": "500 ms",
    "duration": "2 s",
    "seed": 1,
}


class Overdue(Exception):
    """The drill did not finish within its deadline."""


@dataclass
class Findings:
    """The problems found, a line each; must stay empty."""

    lost: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    wrong_verdicts: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.leftovers or self.wrong_verdicts)


@dataclass
class Drill:
    """``lab``: real nodes, for kinds that need them. ``notes``: what was done, for people who repeat it."""

    name: str
    number: int
    dice: random.Random
    folder: Path
    lab: "Lab | None" = None
    seconds: float = DEADLINE_S
    found: Findings = field(default_factory=Findings)
    notes: list[str] = field(default_factory=list)
    ends: ExitStack = field(default_factory=ExitStack)
    """Called when the drill is over, to undo changes."""

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds
        self._started: list[subprocess.Popen[str]] = []
        self.folder.mkdir(parents=True)
        self.temporary.mkdir()
        self.runs = self.folder / "runs"

    @property
    def temporary(self) -> Path:
        """Returns the TMPDIR of everything that the drill starts; it must be empty at the end."""
        return self.folder / "tmp"

    @property
    def run(self) -> RunDirectory:
        """Returns the run that the drill is about, if it printed its id."""
        return RunDirectory(self.runs / EXPERIMENT["name"] / RUN_ID)

    @property
    def nodes(self) -> list[str]:
        return [node.name for node in self.lab.nodes] if self.lab else list(NODES)

    @property
    def left_s(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Overdue(f"not done within {self.seconds:g} s")
        return left

    def note(self, text: str) -> None:
        self.notes.append(text)

    def experiment(self, file_name: str = "experiment", **changes: Any) -> Path:
        """Writes an experiment with three nodes for a few seconds; on the real nodes if there are some."""
        file = self.folder / f"{file_name}.yaml"
        if self.lab is not None:
            return self.lab.experiment(file, **{"lease": "15s", "clocks": {"uncertainty": "5s"}, **changes})
        file.write_text(yaml.safe_dump({**EXPERIMENT, **changes}))
        return file

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        own = self.lab.environment if self.lab is not None else {**os.environ, "PYTHONPATH": str(ROOT)}
        places = {"ROVE_RUNS_DIR": str(self.runs), "TMPDIR": str(self.temporary), "COLUMNS": "200"}
        return {**own, **places, **(more or {})}

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Starts `rove` with these arguments; it is ended when the drill is over."""
        with (self.folder / "out.txt").open("ab") as out, (self.folder / "err.txt").open("ab") as err:
            process = subprocess.Popen(
                rove_command(*map(str, arguments)),
                env=self.environment(env),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def start_run(self, file: Path, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        return self.start("run", file, "--run-id", RUN_ID, "--no-analyze", env=env)

    def wait(self, process: "subprocess.Popen[str]") -> int:
        """Waits for the process and returns its exit code; minus the signal if one ended it."""
        try:
            return process.wait(self.left_s)
        except subprocess.TimeoutExpired as error:
            raise Overdue(f"{process.args!r} had not ended after {self.seconds:g} s") from error

    def rove(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a verb to its end; it must never print a traceback."""
        command = rove_command(*map(str, arguments))
        try:
            done = subprocess.run(
                command,
                env=self.environment(env),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self.left_s,
            )
        except subprocess.TimeoutExpired as error:
            raise Overdue(f"rove {arguments!r} had not ended after {self.seconds:g} s") from error
        if "Traceback" in done.stderr:
            self.found.wrong_verdicts.append(
                f"rove {arguments[0]} broke: {done.stderr.strip().splitlines()[-1]}"
            )
        return done

    def until(self, condition: Callable[[], bool], process: "subprocess.Popen[str] | None" = None) -> bool:
        """Waits for the condition; False if ``process`` ended before."""
        while not condition():
            if process is not None and process.poll() is not None:
                return condition()
            time.sleep(min(0.002, self.left_s))
        return True

    @property
    def stderr(self) -> str:
        """Returns what the started commands wrote to stderr."""
        return (self.folder / "err.txt").read_text(errors="replace")

    def close(self) -> None:
        """Removes everything of the drill, whatever went wrong."""
        for process in self._started:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
        for run in run_directory.all_runs(self.runs):
            processes.end(processes.marked(run.id, run.path), 1.0)
            network.down(Mark(run.id, run.path))
        self.ends.close()


@contextmanager
def small_disk(drill: Drill, size: int, files: int = 10_000) -> Iterator[Path]:
    """Mounts a disk of this many bytes and files as the runs directory, until the drill is over."""
    drill.runs.mkdir(exist_ok=True)
    mount = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={size},nr_inodes={files},mode=755",
        "rove-drill",
        str(drill.runs),
    ]
    subprocess.run(mount, check=True, timeout=20)
    unmount = ["umount", "--lazy", str(drill.runs)]
    drill.ends.callback(subprocess.run, unmount, check=False, timeout=20)
    yield drill.runs
