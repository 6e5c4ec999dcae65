"""Starts `rove run` and `rove serve` as processes of their own, and measures what the server costs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

_TICKS = os.sysconf("SC_CLK_TCK")
END_S = 20.0
START_S = 60.0
LOOK_S = 0.2


def rove(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator.cli.main", *arguments]


def mobile_experiment(nodes: int, rate: float, warmup: float, duration: float) -> dict[str, Any]:
    """Describes a chain of two operators, three replicas each, over nodes that move at 5 m/s."""
    side = 1200.0 * (nodes / 25) ** 0.5
    mobility = {"model": "random_waypoint", "speed": 5.0, "speed_spread": 1.0, "pause": 2.0}
    return {
        "name": "watched",
        "topology": {"name": "field", "nodes": nodes, "area": [side, side], "mobility": mobility},
        "backend": "netns",
        "query": {"name": "synthetic_chain", "rate": rate, "payload": 2000},
        "replicas": 3,
        "warmup": warmup,
        "duration": duration,
        "seed": 1,
    }


def write_experiment(document: dict[str, Any], folder: Path) -> Path:
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


class RunProcess:
    """A run that goes on. ``directory`` is there as soon as it is known."""

    def __init__(self, file: Path, runs: Path) -> None:
        command = rove("run", str(file), "--no-analyze", "--json", "--runs-dir", str(runs))
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._runs = runs
        self._known = {path.name for path in runs.glob("watched/*")}

    def directory(self) -> Path:
        """Waits until the run has a directory."""
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            for path in self._runs.glob("watched/*"):
                if (
                    path.name not in self._known
                    and path.name != "latest"
                    and (path / "manifest.json").exists()
                ):
                    return path
            time.sleep(LOOK_S)
        raise RuntimeError(f"the run did not begin: {self._process.communicate()[1]}")

    def wait_for(self, phase: str, timeout: float) -> None:
        events, end = self.directory() / "events.jsonl", time.monotonic() + timeout
        while time.monotonic() < end:
            lines = events.read_text().splitlines() if events.exists() else []
            if any(f'"phase":"{phase}"' in line.replace(" ", "") for line in lines):
                return
            if self._process.poll() is not None:
                break
            time.sleep(LOOK_S)
        raise RuntimeError(f"the run did not come to {phase}")

    def result(self, timeout: float) -> dict[str, Any]:
        """Waits for the end; returns what `rove run --json` printed."""
        printed, said = self._process.communicate(timeout=timeout)
        if not printed.strip():
            raise RuntimeError(f"the run broke: {said}")
        document: dict[str, Any] = json.loads(printed)
        return document

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.communicate(timeout=120)


class ServerProcess:
    """A page's server of its own. ``address`` ends in a slash."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self._process = process
        self.address = address

    def cpu_s(self) -> float:
        """Returns the processor time of the server so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def serving(runs: Path) -> Iterator[ServerProcess]:
    command = rove("serve", "--runs-dir", str(runs), "--port", "0", "--json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield ServerProcess(process, json.loads(process.stdout.readline())["url"])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(END_S)


def delivered(directory: Path) -> int:
    """Counts tuples that sinks got in the measured part of a run."""
    manifest = json.loads((directory / "manifest.json").read_text())
    first, last = manifest["measure_from_ns"], manifest["measure_until_ns"]
    count = 0
    for segment in directory.glob("nodes/*/segments/*.jsonl"):
        for line in segment.read_bytes().splitlines():
            if b'"tuple_delivered"' in line:
                record = json.loads(line)
                count += record.get("tuples", 1) if first <= record["t_ns"] <= last else 0
    return count
