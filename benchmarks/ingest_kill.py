"""Kills the analysis of runs with ``kill -9`` at random moments, and checks that this changes no table.

Runs are made in virtual time and analysed once without interruption. Then the analysis is started over and
over, and killed after a random part of the time that it took; what it has entered into its store stays. After
the kills, and whenever it ended before its kill, it is run to its end, and the tables are held against those
of the uninterrupted one, row by row: the records in columns, the tables that Spark makes of them, and the
results.

    python -m benchmarks.ingest_kill --kills 20             # rove analyze
    python -m benchmarks.ingest_kill --kills 20 --stream    # rove analyze --new, with its checkpoint

``--intake`` only reads telemetry into columns, without Spark, which takes a moment: for many kills, and for
tests.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyarrow import parquet

from orchestrator.analytics.intake.taking import take_in
from orchestrator.analytics.store import TableStore
from orchestrator.results.inputs import runs_in

ROOT = Path(__file__).resolve().parents[1]
ROVE = (sys.executable, "-m", "orchestrator.cli.main")
NAME = "killed"
PATIENCE_S = 900.0
TRIES = 3

EXPERIMENT: dict[str, Any] = {
    "name": NAME,
    "topology": {
        "name": "square",
        "nodes": [f"n{number}" for number in range(1, 7)],
        "area": "400 m x 400 m",
        "mobility": {"model": "random_waypoint", "speed": "5 m/s", "pause": "1 s"},
        "radio": {"model": "disc", "range": "250 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
    },
    "backend": "sim",
    "routing": "ground_truth",
    "query": {"name": "synthetic_chain", "rate": "10 fps", "payload": "1 kB"},
    "placement": {"policy": "random"},
    "warmup": "1s",
    "duration": "20s",
    "seed": 1,
    "sweep": {"replicas": [1, 2]},
}

ANALYSIS, STREAM, INTAKE = "analysis", "stream", "intake"

Digests = dict[str, str]


def made_runs(folder: Path) -> Path:
    """Runs the experiment; returns the directory of the sweep."""
    file, runs = folder / f"{NAME}.yaml", folder / "runs"
    file.write_text(json.dumps(EXPERIMENT))  # JSON is YAML
    arguments = ("run", str(file), "--no-analyze", "--jobs", "1", "--run-id", "k", "--runs-dir", str(runs))
    done = subprocess.run([*ROVE, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise SystemExit(f"rove run exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return runs / NAME / "k"


def start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def to_its_end(command: Sequence[str]) -> float:
    """Runs the command without interruption; returns the seconds that it took. On a busy machine Spark may
    not start in time: then it is run again."""
    for _ in range(TRIES):
        begin = time.monotonic()
        code = start(command).wait(PATIENCE_S)
        if not code:
            return time.monotonic() - begin
        say(f"{' '.join(command)} exited with {code}")
    raise SystemExit(f"it failed {TRIES} times")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def command_for(directory: Path, what: str) -> list[str]:
    """Returns what is killed: the analysis of a run or sweep, the stream of all runs, or only the intake."""
    if what == INTAKE:
        return [sys.executable, "-m", "benchmarks.ingest_kill", "--of", str(directory)]
    if what == STREAM:
        return [*ROVE, "analyze", "--new", "--json", "--runs-dir", str(directory.parent.parent)]
    return [*ROVE, "analyze", str(directory), "--json"]


def tables_of(runs: Path) -> Digests:
    """Returns a digest of the rows of every table and every kind of record, in no order, and of results."""
    store = TableStore(runs)
    rows: dict[str, list[str]] = {}
    for file in store.state.files:
        found = parquet.read_table(store.root / file.path, partitioning=None).to_pylist()
        rows.setdefault(f"{file.layer} {file.of}", []).extend(map(_text, found))
    for path in store.root.glob("results/*.json"):
        rows[f"results {path.stem}"] = [path.read_text()]
    return {name: sha256("\n".join(sorted(texts)).encode()).hexdigest() for name, texts in rows.items()}


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def different(ours: Digests, theirs: Digests) -> list[str]:
    """Returns the names of tables that are not the same in both."""
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))


def leftovers(runs: Path) -> list[str]:
    """Returns files of the store that its log does not name."""
    store = TableStore(runs)
    named = {file.path for file in store.state.files}
    found = {path.relative_to(store.root).as_posix() for path in store.root.glob("*/*.parquet")}
    staged = [str(path) for path in store.root.glob("staging/*")]
    return [*sorted(found - named), *staged]


def campaign(directory: Path, kills: int, seed: int, what: str = ANALYSIS) -> dict[str, Any]:
    """Kills the analysis of a run or a sweep so often; returns what differed."""
    drawn, runs = random.Random(seed), directory.parent.parent
    command = command_for(directory, what)
    took_s = to_its_end(command)
    expected = tables_of(runs)
    shutil.rmtree(runs / ".tables")
    done = compared = 0
    differences: list[str] = []
    left: list[str] = []
    while done < kills:
        process = start(command)
        try:
            process.wait(drawn.uniform(0.0, took_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            done += 1
            say(f"{done} killed, {compared} compared, {len(differences)} differ")
            if done < kills:
                continue
            to_its_end(command)
        if process.returncode > 0:
            to_its_end(command)
        # It has come to its end, after the kills before: look, and begin anew.
        differences += different(tables_of(runs), expected)
        left += leftovers(runs)
        compared += 1
        shutil.rmtree(runs / ".tables")
    return {
        "of": what,
        "kills": done,
        "differences": len(differences),
        "leftovers": len(left),
        "comparisons": compared,
        "tables": len(expected),
        "uninterrupted_s": round(took_s, 1),
        "different": differences[:20],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Kill the analysis at random moments and compare its tables."
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--intake", dest="what", action="store_const", const=INTAKE, help="only the intake")
    what.add_argument("--stream", dest="what", action="store_const", const=STREAM, help="rove analyze --new")
    parser.set_defaults(what=ANALYSIS)
    parser.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.of is not None:
        take_in(TableStore(arguments.of.parent.parent), runs_in(arguments.of), lambda fraction: None)
        return
    with TemporaryDirectory() as folder:
        found = campaign(made_runs(Path(folder)), arguments.kills, arguments.seed, arguments.what)
    if arguments.json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{name}: {value}" for name, value in found.items()))
    if found["differences"] or found["leftovers"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
