"""A user's own Python file, from the experiment that names it to what arrives at the sink in virtual time."""

import json
import os
import re
import runpy
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow
from node_agent.apps.dataflow.query.load import load_module, load_query
from node_agent.apps.dataflow.testing import run
from node_agent.query import QueryError
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_experiment
from tests.unit.rove_process import command, rove
from tests.unit.specs import section

ROOT = Path(__file__).parents[5]
CHECKPOINT = ROOT / "experiments" / "checkpoint.py"

QUERY = """
from node_agent.query import Query, count, operator, sink, source


@source(rate=20)
def left(tau: int) -> bytes:
    return b"%d" % tau


@source(rate=20)
def right(tau: int) -> bytes:
    return b"%d" % (100 * tau)


@operator
def odd(payload: bytes) -> bool:
    return int(payload) % 2 == 1


@operator
def positive(payload: bytes) -> bytes:
    if int(payload) % 700 == 0:
        raise ValueError("seven")
    return payload


@operator
def add(one: bytes, other: bytes) -> bytes:
    return b"%d" % (int(one) + int(other))


@operator
async def total(sums: list[bytes]) -> bytes:
    return b"%d" % sum(map(int, sums))


@sink
def store(payload: bytes, *, file: str) -> None:
    print("{}", payload.decode())
    with open(file, "ab") as out:
        out.write(payload + b"\\n")


def build(file: str = "", size: int = 4) -> Query:
    query = Query("sums")
    small = query.source(left).map(odd)
    large = query.source(right).map(positive, on_error="dead_letter")
    return small.join(large, using=add).window(count(size, 2), total).sink(store, file=file)
"""

EXPERIMENT: dict[str, Any] = {
    "name": "sums",
    "topology": {
        "name": "square",
        "nodes": 9,
        "area": "300 m x 300 m",
        "mobility": {"model": "static", "grid": {"columns": 3, "spacing": "100 m"}},
        "radio": {"model": "disc", "range": "500 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
    },
    "routing": "ground_truth",
    "query": {"python": "sums.py:build", "arguments": {"size": 4}},
    "replicas": 1,
    "duration": "5s",
}


def written(folder: Path, document: dict[str, Any]) -> Path:
    (folder / "sums.py").write_text(QUERY)
    file = folder / "sums.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def test_a_users_query_runs_in_virtual_time(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    query = {"python": "sums.py:build", "arguments": {"file": str(out)}}
    file = written(tmp_path, {**EXPERIMENT, "query": query})
    done = rove(tmp_path / "runs", "run", str(file), "--run-id", "r1", "--no-analyze")
    assert done.returncode == 0, done.stderr
    lists = {"left": [b"%d" % n for n in range(1, 200)], "right": [b"%d" % (100 * n) for n in range(1, 200)]}
    expected = run(load_query(tmp_path / "sums.py", "build", {"file": "/dev/null"}), lists)["store"]
    delivered = out.read_bytes().split()
    assert len(delivered) > 40
    assert set(delivered) <= set(expected)
    directory = tmp_path / "runs" / "sums" / "r1"
    printed = (directory / "simulator.log").read_text().splitlines()
    assert printed == ["{} " + payload.decode() for payload in delivered]
    segments = directory.glob("nodes/*/segments/*.jsonl")
    records = [json.loads(line) for segment in segments for line in segment.read_text().splitlines()]
    reasons = Counter(record["reason"] for record in records if record["kind"] == "tuple_dropped")
    failing = QUERY[: QUERY.index("raise ValueError")].count("\n") + 1
    dead = f"dead_letter:OperatorError: positive (sums.py:{failing}): ValueError: seven"
    assert {"absorbed", dead} <= set(reasons)
    emitted = {r["origin"] for r in records if r["kind"] == "tuple_emitted"}
    assert emitted == {"left/0", "right/0", "add", "total"}


def test_the_file_goes_with_the_run(tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, EXPERIMENT))
    copy = tmp_path / "copy"
    for name, content in bundle(experiment).items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    again = load_experiment(copy / "spec.yaml")
    assert again == experiment
    assert section(again).dataflow().module == str(copy / "query" / "sums.py")
    assert section(again).dataflow().operators == section(experiment).dataflow().operators


def test_arguments_and_reliability_of_a_python_query(tmp_path: Path) -> None:
    query = {"python": "sums.py:build", "arguments": {"size": 7}, "reliability": "at_least_once"}
    built = section(load_experiment(written(tmp_path, {**EXPERIMENT, "query": query}))).dataflow()
    assert built.operator("total").takes == CountWindow(7, 2)
    assert built.reliability == "at_least_once"


def test_windows_joins_and_limits_written_out(tmp_path: Path) -> None:
    operators = {
        "a": {"kind": "synthetic_source", "rate": "5 fps"},
        "b": {"kind": "synthetic_source"},
        "counted": {"kind": "work", "after": "a", "window": 10, "on_error": "dead_letter"},
        "slid": {"kind": "work", "after": "a", "window": {"count": 10, "slide": 3}, "buffers": {"a": 20}},
        "timed": {"kind": "match", "after": ["a", "b"], "window": "2s", "key": 4},
        "both": {
            "kind": "match",
            "after": ["a", "b"],
            "join": "tau",
            "on_error": {"retry": 3, "then": "dead_letter"},
        },
        "every": {"kind": "work", "after": "b", "window": {"time": "2s", "slide": "500 ms"}},
        "screen": {"kind": "sink", "after": ["counted", "slid", "timed", "both", "every"]},
    }
    query = {"reliability": "exactly_once", "operators": operators}
    experiment = load_experiment(written(tmp_path, {**EXPERIMENT, "query": query}))
    built = section(experiment).dataflow()
    assert built.reliability == "exactly_once"
    assert [built.operator(name).takes for name in ("counted", "slid", "timed", "both", "every")] == [
        CountWindow(10, 10),
        CountWindow(10, 3),
        TimeWindow(2_000_000_000, 2_000_000_000),
        SameTau(),
        TimeWindow(2_000_000_000, 500_000_000),
    ]
    dead = ErrorPolicy(3, "dead_letter")
    assert built.operator("both") == OperatorSpec("both", "match", ("a", "b"), {"key": 8}, SameTau(), dead)
    assert built.operator("slid").buffers == {"a": 20}
    for name, content in bundle(experiment).items():
        (tmp_path / name).write_bytes(content)
    assert load_experiment(tmp_path / "spec.yaml") == experiment


def installed(folder: Path, module: str) -> dict[str, str]:
    """The environment in which a package with these operators is installed."""
    (folder / "my_ops.py").write_text(module)
    facts = folder / "my_ops-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: my_ops\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[rove.operators]\nshout = my_ops:shout\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def validated(file: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("validate", str(file)), env=environment, capture_output=True, text=True, timeout=30, cwd=ROOT
    )


def test_operators_of_an_installed_package_can_be_named_in_files(tmp_path: Path) -> None:
    operators: dict[str, dict[str, Any]] = {
        "camera": {"kind": "synthetic_source"},
        "shout": {"kind": "shout", "after": "camera", "times": 2, "word": "ho", "volume": 1.5},
        "screen": {"kind": "sink", "after": "shout"},
    }
    file = written(tmp_path, {**EXPERIMENT, "query": {"operators": operators}})
    code = "from node_agent.query import operator\n@operator\n"
    parameters = "*, times: int, word: str = 'hey', volume: float = 1.0"
    there = installed(tmp_path, code + f"def shout(x: bytes, {parameters}) -> bytes: return x * times\n")
    assert validated(file, there).returncode == 0
    operators["shout"]["times"] = "many"
    wrong = validated(written(tmp_path, {**EXPERIMENT, "query": {"operators": operators}}), there)
    assert wrong.returncode == 2
    assert 'query.operators.shout.times: "many": expected a whole number' in wrong.stderr
    (tmp_path / "my_ops.py").write_text("import nothing_of_that_name")
    broken = validated(file, there)
    assert broken.returncode == 2
    assert (
        "the kind of operator 'shout' of my_ops (my_ops:shout) cannot be loaded: my_ops.py, line 1"
        in broken.stderr
    )


def test_the_shipped_example() -> None:
    query = load_query(CHECKPOINT, "build", {})
    car, slow, fast = b'{"lane": 1, "plate": "B-1"}', b'{"lane": 1, "speed": 50}', b'{"lane": 1, "speed": 70}'
    results = run(query, {"camera": [car, car, car], "radar": [slow, fast, fast]})
    assert [json.loads(payload) for payload in results["screen"]] == [
        {"reports": 1, "plates": ["B-1"]},
        {"reports": 1, "plates": ["B-1"]},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build(:", "bad.py:1: invalid syntax"),
        ("import nothing_of_that_name", "bad.py:1: ModuleNotFoundError: No module named"),
        (
            "from node_agent.query import operator\n@operator\ndef f() -> bytes:\n    return b''\n",
            r"f \(bad.py:2\) takes nothing: its first parameter is what it is to process",
        ),
        (
            "from node_agent.query import operator\n@operator\ndef f(x: bytes, *, n=3) -> bytes: return x\n",
            r"f \(bad.py:2\): say of which type the parameter n is",
        ),
        (
            "from node_agent.query import operator\n@operator\ndef f(x: bytes, *, window: int) -> bytes:\n"
            "    return x\n",
            r"f \(bad.py:2\): a parameter cannot be called window",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(QueryError, match=message):
        load_module(tmp_path / "bad.py")


def test_the_examples_of_the_manual_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manual = (ROOT / "docs" / "queries.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", manual, flags=re.DOTALL)
    assert len(blocks) >= 2
    names = re.findall(r"`(\w+\.py)`:\n```python", manual)
    assert len(names) == len(blocks)
    for name, block in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(block)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in names:
        for thing, value in runpy.run_path(str(tmp_path / name)).items():
            if thing.startswith("test_"):
                value()
