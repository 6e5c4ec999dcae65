"""An application of another package: installed from outside, and used by a real `rove run`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NEEDS
from tests.extension.harness import ROOT, written

pytestmark = pytest.mark.timeout(240)

OFFERS = """
[rove.applications]
beacons = tests.extension.beacons.agent:BEACONS
[rove.orchestrator_applications]
beacons = tests.extension.beacons.experiment:BEACONS
[rove.analytics]
beacons = tests.extension.beacons.experiment:CONTRIBUTION
"""


def install(folder: Path, offers: str = OFFERS, package: str = "beacons") -> None:
    """As pip would: a package of that name, with entry points."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(offers)


def rove(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "ROVE_RUNS_DIR": str(folder / "runs"), "COLUMNS": "300"}
    command = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)


def run_of(folder: Path, file: Path, *options: str) -> tuple[Path, dict[str, Any]]:
    done = rove(folder, "run", str(file), "--json", *options)
    assert done.returncode == 0, done.stderr + done.stdout
    document = json.loads(done.stdout)
    return Path(document["directory"]), document


def last_counts(directory: Path, app: str) -> list[int]:
    counts: dict[str, int] = {}
    for file in sorted(directory.glob("nodes/*/segments/*.jsonl")):
        for record in map(json.loads, file.read_text().splitlines()):
            if record["kind"] == "beacon_heard" and record["app"] == app:
                counts[record["node"]] = record["count"]
    return list(counts.values())


@pytest.mark.unit
def test_beside_a_query(tmp_path: Path) -> None:
    install(tmp_path)
    directory, _ = run_of(tmp_path, written(tmp_path, beacons={"every": "500 ms"}), "--no-analyze")
    manifest = json.loads((directory / "manifest.json").read_text())
    assert {name: app["kind"] for name, app in manifest["apps"].items()} == {
        "query": "query",
        "beacons": "beacons",
    }
    counts = last_counts(directory, "beacons")
    assert (
        len(counts) == 4 and min(counts) >= 3 * 5
    )  # three others, at least five times each in three seconds
    exported = rove(tmp_path, "export", "latest", "--openmetrics")
    assert exported.returncode == 0, exported.stderr
    heard = [line for line in exported.stdout.splitlines() if line.startswith("rove_beacons_heard_total{")]
    assert all('app="beacons"' in line for line in heard) and len(heard) >= 4 * 3
    assert {float(line.split()[-2]) for line in heard} >= set(map(float, counts))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(NEEDS["spark"]() is not None, reason=str(NEEDS["spark"]()))
def test_alone_with_its_metric_and_its_part_of_the_report(tmp_path: Path) -> None:
    install(tmp_path)
    file = written(tmp_path, expect=["beacons_heard > 10"])
    text = file.read_text().replace("query:\n  name: synthetic_chain\n  operators: 1\n", "beacons: {}\n")
    text = text.replace("query:\n  operators: 1\n  name: synthetic_chain\n", "beacons: {}\n")
    assert "query" not in text
    file.write_text(text)
    directory, _ = run_of(tmp_path, file)
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["metrics"]["beacons_heard"] == sum(last_counts(directory, "beacons"))
    assert "beacons were heard" in (directory / "report.html").read_text()


@pytest.mark.unit
def test_two_packages_that_want_one_name_are_one_clear_error(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path, OFFERS, "lighthouses")
    done = rove(tmp_path, "validate", str(written(tmp_path, beacons={})))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "several application 'beacons'" in done.stderr
    assert "beacons (tests.extension.beacons" in done.stderr and "lighthouses" in done.stderr


@pytest.mark.unit
def test_two_applications_of_one_name_are_one_clear_error(tmp_path: Path) -> None:
    install(tmp_path)
    done = rove(tmp_path, "validate", str(written(tmp_path, apps={"query": {"beacons": {}}})))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "apps.query" in done.stderr


@pytest.mark.unit
def test_an_unknown_key_names_all_applications(tmp_path: Path) -> None:
    install(tmp_path)
    done = rove(tmp_path, "validate", str(written(tmp_path, apps={"x": {"beacon": {}}})))
    assert done.returncode == 2
    assert "query, flows, detect, interest or beacons" in done.stderr
