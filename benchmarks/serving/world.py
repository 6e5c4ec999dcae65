"""A live `rove serve` on loopback with one short run, and files beside it that nobody may get."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.serving.requests import Target

START_S = 30.0
CANARY = b"CANARY-b7a1c0d2-nobody-may-read-this"
PASSWORDS = b"root:x:0:0"
LINE = Path(__file__).parents[2] / "experiments" / "line.yaml"


class World(NamedTuple):
    target: Target
    port: int
    process: "subprocess.Popen[bytes]"
    log: Path


def short_run(place: Path) -> Path:
    """Runs five nodes in virtual time; returns the directory of runs."""
    runs = place / "runs"
    command = [
        sys.executable,
        "-m",
        "orchestrator.cli.main",
        "run",
        str(LINE),
        "--no-analyze",
        "--run-id",
        "r1",
    ]
    subprocess.run([*command, "--runs-dir", str(runs)], check=True, capture_output=True, timeout=120)
    plant(place, runs)
    return runs


def plant(place: Path, runs: Path) -> None:
    """Puts files that nobody may get outside of the runs, into them, and behind links in a run."""
    run = next(runs.glob("*/r1"))
    for path in (place / "secret.txt", runs / "secret.txt", run.parent / "secret.txt", run / "secret.txt"):
        path.write_bytes(CANARY)
    for node in (run / "nodes").iterdir():
        frames = node / "frames" / "screen-0"
        frames.mkdir(parents=True)
        (frames / "latest.jpg").symlink_to(place / "secret.txt")
        (frames / "00000003.jpg").symlink_to("/etc/passwd")


@contextmanager
def served(place: Path, runs: Path) -> Iterator[World]:
    """Yields a server with a token, a session with it, and control allowed."""
    log = place / "serve.log"
    command = [sys.executable, "-m", "orchestrator.cli.main", "serve", "--runs-dir", str(runs)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "--port", "0", "--json", "--control"], stdout=subprocess.PIPE, stderr=errors
        )
    try:
        assert process.stdout is not None
        started = json.loads(_first_line(process))
        port = int(started["port"])
        host = f"127.0.0.1:{port}"
        cookie = _session(host, started["url"].rpartition("#token=")[2])
        yield World(Target(host, cookie, "r1", "a", "query", "screen/0"), port, process, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _first_line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    deadline = time.monotonic() + START_S
    os.set_blocking(process.stdout.fileno(), False)
    line = b""
    while not line.endswith(b"\n") and time.monotonic() < deadline and process.poll() is None:
        line += process.stdout.readline() or b""
        time.sleep(0.02)
    return line


def _session(host: str, token: str) -> str:
    request = urllib.request.Request(
        f"http://{host}/api/session",
        json.dumps({"token": token}).encode(),
        {"Content-Type": "application/json", "Origin": f"http://{host}"},
    )
    with urllib.request.urlopen(request, timeout=START_S) as answer:
        return str(answer.headers["Set-Cookie"]).split(";")[0]


async def answers(world: World) -> bool:
    """Does the server still answer an honest question?"""
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            try:
                target = world.target
                asked = f"GET /api/runs HTTP/1.1\r\nHost: {target.host}\r\nCookie: {target.cookie}\r\n"
                writer.write(f"{asked}Connection: close\r\n\r\n".encode())
                return b'"r1"' in await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
