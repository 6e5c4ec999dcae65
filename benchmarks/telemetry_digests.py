"""Checks whether a change of the code changes what happens in virtual time, by digests of what runs record.

The same seed gives the same records, to the byte. So a change that is meant to change nothing (modules move,
things are renamed) can be held against what was recorded before it: short experiments are run by the command
line, as a user would, and their records digested, but for the fields that may differ (``IGNORED``). None of
the product's modules is imported here, so they may move.

    python -m benchmarks.telemetry_digests --save before.json --keep before     # then change something
    python -m benchmarks.telemetry_digests --against before.json --records before

``digests/telemetry.json`` holds the digests of the commit that last meant to change behaviour. They are of
one machine: another processor, or another version of OpenCV or of the C library's mathematics, may round
otherwise.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.digests.experiments import EXPERIMENTS, Document
from benchmarks.digests.records import described, differences, keep, kept, recorded

ROOT = Path(__file__).resolve().parents[1]
ROVE = (sys.executable, "-m", "orchestrator.cli.main")
# What experiments name lies beside them.
NAMED = ("experiments/checkpoint.py", "topologies/recorded-6.yaml", "topologies/recorded-6.movements")
SIDES = ("nodes", "radio")

Digests = dict[str, dict[str, Any]]


def run(document: Document, folder: Path) -> Path:
    """Runs an experiment and returns the run's directory. If it is not valid, the error contains what `rove`
    printed.
    """
    name: str = document["name"]
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(document, indent=2))  # JSON is YAML
    runs = folder / "runs"
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [*ROVE, "run", str(file), "--no-analyze", "--jobs", "1", "--run-id", name, "--runs-dir", str(runs)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{name}: rove run exited with {done.returncode}\n{done.stdout}")
    return runs / name / name


def measure(documents: Sequence[Document], keep_in: Path | None) -> Digests:
    found = {}
    with TemporaryDirectory(prefix="rove-digests-") as directory:
        folder = Path(directory)
        for named in NAMED:
            shutil.copy(ROOT / named, folder)
        for document in documents:
            name, before = document["name"], _children_s()
            result = run(document, folder)
            lines = recorded(result)
            found[name] = described(lines)
            if keep_in:
                shutil.rmtree(keep_in / name, ignore_errors=True)
                keep(lines, keep_in / name)
            shutil.rmtree(result)
            counts = ", ".join(f"{found[name][side]['records']} of {side}" for side in SIDES)
            print(f"{name}: {counts}, {_children_s() - before:.1f} s", file=sys.stderr, flush=True)
    return found


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tell(name: str, digests: dict[str, Any]) -> None:
    for side in SIDES:
        of = digests[side]
        print(f"{name:<24}{side:<8}{of['sha256']}{of['records']:>8} records")
        print("    " + ", ".join(f"{kind} {count}" for kind, count in of["kinds"].items()))


def compare(before: Digests, after: Digests, records: Path | None, keep_in: Path) -> dict[str, list[str]]:
    """Returns which experiments differ, and how."""
    return {
        name: _compared(before[name], digests) + _first(name, records, keep_in)
        if name in before
        else ["not among the digests to compare with"]
        for name, digests in after.items()
        if before.get(name) != digests
    }


def _compared(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found = []
    for side in SIDES:
        old, new = before[side], after[side]
        if parts := _changed(old["parts"], new["parts"]):
            found.append(f"{side}: {old['records']} → {new['records']} records; others in {', '.join(parts)}")
        counts = (old["kinds"], new["kinds"])
        found += [
            f"{kind}: {counts[0].get(kind, 0)} → {counts[1].get(kind, 0)}" for kind in _changed(*counts)
        ]
    return found


def _changed(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]


def _first(name: str, records: Path | None, keep_in: Path) -> list[str]:
    if not records or not (records / name).is_dir():
        return ["the records to compare with were not kept (--keep, then --records)"]
    found = differences(kept(records / name), kept(keep_in / name))
    if not found:
        return ["the records that were kept are the same: they are not those of the digests"]
    first = found[0]
    return [
        f"first at {first.t_ns / 1e9:.9f} s, record {first.number} of {first.part}",
        f"  before: {first.before}",
        f"  after:  {first.after}",
    ]


def main() -> int:
    names = [document["name"] for document in EXPERIMENTS]
    parser = argparse.ArgumentParser(
        description="telemetry_digests: did what happens in virtual time change?"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", action="append", choices=names, help="this one; may be given again")
    parser.add_argument("--save", type=Path, help="write the digests to this file")
    parser.add_argument("--keep", type=Path, help="keep the records in this folder")
    parser.add_argument(
        "--against", type=Path, help="compare with the digests in this file; exit 1: they differ"
    )
    parser.add_argument("--records", type=Path, help="where the records of those digests were kept")
    arguments = parser.parse_args()
    if arguments.records and not arguments.against:
        parser.error("--records is about --against")
    if arguments.records and arguments.keep and arguments.records.resolve() == arguments.keep.resolve():
        parser.error("--keep would overwrite the records to compare with")
    before: Digests = json.loads(arguments.against.read_text()) if arguments.against else {}
    chosen = [document for document in EXPERIMENTS if document["name"] in (arguments.only or names)]
    with TemporaryDirectory(prefix="rove-digests-") as directory:
        keep_in = arguments.keep or (Path(directory) if arguments.records else None)
        found = measure(chosen, keep_in)
        if arguments.save:
            arguments.save.parent.mkdir(parents=True, exist_ok=True)
            arguments.save.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        differing = {}
        if arguments.against:
            differing = compare(before, found, arguments.records, keep_in or Path(directory))
            if not arguments.only:
                differing |= {
                    name: ["no longer among the experiments"] for name in before if name not in found
                }
    if arguments.json:
        document = {"benchmark": "telemetry_digests", "experiments": found, "differing": differing}
        print(json.dumps(document))
        return 1 if differing else 0
    for name, digests in found.items():
        tell(name, digests)
    for name, how in differing.items():
        print("\n    ".join([f"{name} DIFFERS", *how]))
    if arguments.against:
        print(f"{len(differing)} of {len(found)} experiments differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
