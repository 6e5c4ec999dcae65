"""One run on the laboratory, watched: when its phases begin, how each node came through, what it recorded."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from node_agent.telemetry.segments import Completeness, inspect, read_records
from orchestrator.runs.backend import NodeOutcome, Status
from orchestrator.runs.files import parse_lines
from orchestrator.runs.run_directory import RunDirectory
from tests.ssh.lab import EXPERIMENT, Lab, LabNode
from tests.unit.rove_process import phases

TEST_S = 240
"""For a test of a whole run; the first one has to deploy to all nodes."""
PATIENCE_S = 90.0


class Drill:
    """Use it as a context manager: what is still under way at the end of the test is killed."""

    def __init__(self, lab: Lab, name: str, **changes: Any) -> None:
        self._lab = lab
        self.run = RunDirectory(lab.runs / EXPERIMENT["name"] / name)
        self.file = lab.experiment(lab.folder / f"{name}.yaml", **changes)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Drill":
        command = ("run", self.file, "--run-id", self.run.id, "--no-analyze", "--json")
        self._process = self._lab.start(*command)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    @property
    def process(self) -> "subprocess.Popen[str]":
        assert self._process is not None, "not started"
        return self._process

    def reach(self, phase: str) -> None:
        self.until(lambda: phase in phases(self.run), f"it reaches {phase}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """While it runs."""

        def met() -> bool:
            if condition():
                return True
            assert self.process.poll() is None, f"ended before {what}: {self.process.communicate()}"
            return False

        wait_until(met, what)

    def finish(self) -> int:
        """Its exit code."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.run.verdict.exists(), out + err
        return self.exit_code

    @property
    def exit_code(self) -> int:
        return int(self.process.returncode)

    def collect_later(self) -> dict[str, str]:
        """With `rove collect`: what came of each node that had something left."""
        done = self._lab.rove("collect", self.run.id, "--no-analyze", "--json")
        assert done.stdout, done.stderr
        return {entry["node"]: entry["outcome"] for entry in json.loads(done.stdout)["nodes"]}

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run.verdict.read_text())
        return found

    def outcome(self, phase: str, node: LabNode) -> NodeOutcome:
        """The last that was said of it."""
        told = [event for event in _events(self.run) if event["kind"] == "nodes" and event["phase"] == phase]
        assert told, f"nothing was said of nodes in {phase}: {self.verdict}"
        for status in (Status.FAILED, Status.UNREACHABLE):
            if node.name in told[-1][status]:
                return NodeOutcome(node.name, status, told[-1][status][node.name])
        assert node.name in told[-1]["ok"]
        return NodeOutcome(node.name, Status.OK)

    def completeness(self, node: LabNode) -> Completeness:
        return inspect(self.run.segments(node.name))

    def delivered(self, node: LabNode) -> int:
        """Tuples that reached the sink there."""
        return sum(
            record["kind"] == "tuple_delivered" for record in read_records(self.run.segments(node.name))
        )

    def on_node(self, node: LabNode) -> Path:
        return node.home / ".rove" / "runs" / self.run.id / node.name / "record"

    def here(self, node: LabNode) -> Path:
        return self.run.nodes / node.name


def _events(run: RunDirectory) -> list[dict[str, Any]]:
    return list(parse_lines(run.events.read_bytes())) if run.events.exists() else []


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def contents(directory: Path) -> dict[str, str]:
    """Every file there, and the digest of what is in it."""
    return {
        str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
