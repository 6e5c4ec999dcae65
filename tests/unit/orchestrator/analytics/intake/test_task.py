"""Reading runs into columns: every line is a record once, or counted and described."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from node_agent.apps.dataflow.events import LinkCost, TupleDelivered, TupleEmitted, TupleSent
from node_agent.apps.records import record_format
from node_agent.model.telemetry import AgentStart, AgentStop
from node_agent.telemetry.belief import writers
from node_agent.telemetry.segments import inspect
from orchestrator.analytics.intake.columns import BAD, BOOT, of_record, of_truth
from orchestrator.analytics.intake.parts import Part, tasks_for
from orchestrator.analytics.intake.task import MOST_BAD, read_parts
from orchestrator.results.inputs import RunInput, runs_in
from tests.synthetic_runs import SINK, SOURCE, RunWriter, deliver, known_run

Tables = dict[str, list[dict[str, Any]]]


def taken_in(run: RunInput, place: Path, task_bytes: int = 2**40) -> Tables:
    """Rows by kind."""
    found: Tables = {}
    for parts in tasks_for([run], task_bytes):
        for written in read_parts(parts, place):
            rows = parquet.read_table(place / written.name).to_pylist()
            assert {row["run"] for row in rows} == set(written.runs)
            found.setdefault(written.of, []).extend(rows)
    return found


def segment_of(directory: Path, node: str = "n2") -> Path:
    return next((directory / "nodes" / node / "segments").iterdir())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return known_run(tmp_path / "runs").write()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "staging"
    found.mkdir()
    return found


def test_every_record_is_there_once(directory: Path, place: Path) -> None:
    (run,) = runs_in(directory)
    found = taken_in(run, place)
    lines = [
        json.loads(line)
        for segment in run.segments
        for line in segment.path.read_bytes().splitlines()
        if segment.size
    ]
    by_kind = {kind: [line for line in lines if line["kind"] == kind] for kind in {x["kind"] for x in lines}}
    for kind, written in by_kind.items():
        rows = found[of_record(kind)]
        for row, line in zip(rows, written, strict=True):
            assert {name: row[name] for name in line if name != "app"} == {
                name: value for name, value in line.items() if name != "app"
            }
    assert sum(row["records"] for row in found[BOOT]) == len(lines)
    assert len(found[of_truth("links.jsonl")]) == len(
        (run.directory.radio / "links.jsonl").read_bytes().splitlines()
    )


def test_it_does_not_matter_how_runs_are_divided(directory: Path, place: Path) -> None:
    (run,) = runs_in(directory)
    whole, divided = taken_in(run, place), taken_in(run, place, task_bytes=1)
    assert len(tasks_for([run], 1)) > len(tasks_for([run]))
    for name, rows in whole.items():
        assert sorted(map(str, rows)) == sorted(map(str, divided[name]))


def test_a_record_that_comes_twice_counts_once(tmp_path: Path, place: Path) -> None:
    writer = known_run(tmp_path / "runs")
    lines = writer.lines("n2")
    lines += lines[3:6]
    (run,) = runs_in(writer.write(verdict="invalid"))
    found = taken_in(run, place)
    (boot,) = (row for row in found[BOOT] if row["node"] == "n2")
    assert (boot["duplicates"], boot["missing"], boot["corrupt_lines"]) == (3, 0, 0)
    numbers = [
        row["seq"]
        for name, rows in found.items()
        if name.startswith("record ")
        for row in rows
        if row["node"] == "n2"
    ]
    assert sorted(numbers) == list(range(boot["records"]))


def damaged(line: bytes, drawn: random.Random) -> bytes:
    """A line as a fault of a disk, a newer version or a liar would leave it."""
    document = json.loads(line)
    name = drawn.choice(list(document))
    place = drawn.randrange(len(line))
    values: tuple[Any, ...] = (
        None,
        -1,
        2**63,
        2**64,
        1.0,
        1.5,
        1e400,
        True,
        "x",
        [],
        [None],
        {},
        [[[[]]]],
        "\ud800",
        "\0",
    )
    match drawn.randrange(9):
        case 0:
            return line[:place]
        case 1:
            return line[:place] + bytes([drawn.randrange(256)]) + line[place + 1 :]
        case 2:
            return line[:-1] + b',"later":{"a":[1,2,{"b":null}]}}'
        case 3:
            return line.replace(b'":', b'":NaN,"x":', 1)
        case 4:
            return line[:-1] + b',"seq":7}'
        case 5:
            return line[:-1] + b',"deep":' + b"[" * 2000 + b"]" * 2000 + b"}"
        case 6:
            return b"\0" * drawn.randrange(5)
        case 7:
            return json.dumps({**document, drawn.choice(list(document)): document[name]}).encode()
    return json.dumps({**document, name: drawn.choice(values)}).encode()


@pytest.mark.parametrize("seed", range(6))
def test_damaged_lines_are_counted_as_collection_counts_them(tmp_path: Path, place: Path, seed: int) -> None:
    """Both use the same rules, so what the verdict says and what tables say is the same."""
    drawn = random.Random(seed)
    writer = known_run(tmp_path / "runs")
    for node in ("n1", "n2", "n9"):
        lines = writer.lines(node)
        for number in range(len(lines)):
            if drawn.random() < 0.2:
                lines[number] = damaged(lines[number], drawn).replace(b"\n", b" ")
    directory = writer.write(verdict="invalid")
    (run,) = runs_in(directory)
    found = taken_in(run, place)
    apps = {app.name: app.reader.scopes(app.plan) for app in run.apps.values()}
    for node, judge in writers(run.run, ("n1", "n2", "n9"), record_format(), apps).items():
        counted = inspect(run.directory.segments(node), judge)
        rows = [row for row in found[BOOT] if row["node"] == node]
        for name, expected in (
            ("records", counted.records),
            ("missing", counted.missing),
            ("duplicates", counted.duplicates),
            ("corrupt_lines", counted.corrupt + counted.torn),
            ("refused", counted.refused),
        ):
            assert sum(row[name] for row in rows) == expected, (node, name)
        bad = [row for row in found.get(BAD, ()) if row["node"] == node]
        assert len(bad) == counted.corrupt + counted.torn + counted.refused


def test_bad_lines_are_found_where_they_are_said_to_be(directory: Path, place: Path) -> None:
    segment = segment_of(directory)
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[2:2] = [b"\xff\xfe nonsense\n", b"x" * (2**20 + 1) + b"\n"]
    segment.write_bytes(b"".join(lines) + b'{"run":')
    (run,) = runs_in(directory)
    found = taken_in(run, place)
    content = segment.read_bytes()
    rows = found[BAD]
    assert [row["reason"] for row in rows] == ["malformed", "size", "malformed"]
    assert {row["file"] for row in rows} == {f"nodes/n2/segments/{segment.name}"}
    cut = [content[row["offset"] : row["offset"] + row["length"]] for row in rows]
    assert cut == [b"\xff\xfe nonsense\n", b"x" * (2**20 + 1) + b"\n", b'{"run":']
    assert rows[0]["head"].startswith(r"\xff\xfe nonsense")
    (boot,) = (row for row in found[BOOT] if row["node"] == "n2")
    assert boot["corrupt_lines"] == 3


def test_a_hundred_damaged_files_cost_nothing_else(tmp_path: Path, place: Path) -> None:
    writer = known_run(tmp_path / "runs")
    directory = writer.write(verdict="invalid")
    (run,) = runs_in(directory)
    before = taken_in(run, place)
    segments = directory / "nodes" / "n2" / "segments"
    for number in range(100):
        torn = b'{"run":"torn' if number % 2 else b"\x00\xff" * 50
        (segments / f"b0001-s{100 + number:06d}.jsonl").write_bytes(torn)
    (run,) = runs_in(directory)
    after = taken_in(run, place)
    assert len(after.pop(BAD)) == 100
    boots = {row["node"]: row for row in after.pop(BOOT)}
    assert boots["n2"]["corrupt_lines"] == 100
    del before[BOOT]
    assert after == before


def test_what_is_described_of_a_liar_is_bounded(tmp_path: Path, place: Path) -> None:
    directory = known_run(tmp_path / "runs").write(verdict="invalid")
    with segment_of(directory).open("ab") as file:
        file.write(b"nonsense\n" * (MOST_BAD + 500))
    (run,) = runs_in(directory)
    found = taken_in(run, place)
    assert len(found[BAD]) == MOST_BAD
    (boot,) = (row for row in found[BOOT] if row["node"] == "n2")
    assert boot["corrupt_lines"] == MOST_BAD + 500


def test_records_of_older_and_newer_versions_are_read(tmp_path: Path, place: Path) -> None:
    """Old ones name no application and lack later fields; new ones have fields and kinds not known here."""
    writer = RunWriter(tmp_path / "runs", "versions", "v1")
    for node in ("n1", "n2", "n9"):
        writer.record(node, 0, AgentStart("0.1.0", "virtual", ()))
    writer.record("n1", 1, TupleEmitted(SOURCE, SOURCE, 1, 10))
    old = json.loads(writer.lines("n1")[-1])
    assert not {"tuples", "sizes", "app"} & old.keys()
    writer.record("n1", 2, TupleEmitted(SOURCE, SOURCE, 2, 10))
    writer.lines("n1")[-1] = writer.lines("n1")[-1][:-1] + b',"colour":"red","app":"query"}'
    writer.record("n1", 3, LinkCost(SOURCE, "detect/0", 1.0, "etx", "olsr"))
    writer.lines("n1")[-1] = writer.lines("n1")[-1].replace(b'"link_cost"', b'"link_cost_2"')
    deliver(writer, 3, 20.0, 0.4)
    for node in ("n1", "n2", "n9"):
        writer.record(node, 112, AgentStop("stopped"))
    (run,) = runs_in(writer.write())
    found = taken_in(run, place)
    emitted = found[of_record("tuple_emitted")]
    assert [(row["tau"], row["app"], row["tuples"], row["sizes"]) for row in emitted[:2]] == [
        (1, "query", None, None),
        (2, "query", None, None),
    ]
    assert "colour" not in emitted[0]
    assert of_record("link_cost_2") not in found and BAD not in found
    (boot,) = (row for row in found[BOOT] if row["node"] == "n1")
    assert boot["complete"] and boot["missing"] == 0


def test_ground_truth_that_cannot_be_read_is_put_aside(directory: Path, place: Path) -> None:
    with (directory / "radio" / "links.jsonl").open("ab") as file:
        file.write(b'{"t_ns": "soon"}\n{"t_ns":-5,"src":"a","dst":"b","up":true,"cost":1.0}\n{"t_')
    (run,) = runs_in(directory)
    found = taken_in(run, place)
    rows = found[BAD]
    assert [(row["file"], row["node"]) for row in rows] == [("radio/links.jsonl", "")] * 3
    assert all(row["t_ns"] >= 0 for row in found[of_truth("links.jsonl")])


def test_ground_truth_at_no_time_is_put_aside_and_the_lines_beside_it_are_not(
    directory: Path, place: Path
) -> None:
    good = b'{"t_ns":7,"node":"n1","sent_ns":1}\n'
    bad = [
        b'{"t_ns":-5,"node":"n1","sent_ns":1}\n',
        b'{"node":"n1","sent_ns":1}\n',
        b'{"t_ns":%d}\n' % (2**63),
    ]
    file = directory / "radio" / "airtime.jsonl"
    file.write_bytes(b"".join([good, *bad[:2], good, bad[2]]))
    (run,) = runs_in(directory)
    found = taken_in(run, place)
    content = file.read_bytes()
    assert [content[row["offset"] : row["offset"] + row["length"]] for row in found[BAD]] == bad
    assert [row["reason"] for row in found[BAD]] == ["time", "time", "malformed"]
    assert [row["t_ns"] for row in found[of_truth("airtime.jsonl")]] == [7, 7]


def test_a_node_is_never_divided(directory: Path) -> None:
    (run,) = runs_in(directory)
    parts: list[Part] = [part for task in tasks_for([run], 1) for part in task]
    nodes = [node for part in parts for node in part.nodes]
    assert sorted(nodes) == sorted({segment.node for segment in run.segments})
    assert sum(bool(part.truth) for part in parts) == 1


def test_a_forged_record_is_refused_and_described(tmp_path: Path, place: Path) -> None:
    writer = known_run(tmp_path / "runs")
    writer.record("n2", 30, TupleDelivered(SINK, SOURCE, 1, 5, 1))
    writer.record("n2", 30, TupleSent("detect/0", "nobody/0", SOURCE, 1, 5))
    (run,) = runs_in(writer.write(verdict="invalid"))
    found = taken_in(run, place)
    assert [(row["state"], row["reason"]) for row in found[BAD]] == [
        ("refused", "replica"),
        ("refused", "peer"),
    ]


def test_files_have_columns_of_their_kind_only(directory: Path, place: Path) -> None:
    (run,) = runs_in(directory)
    (parts,) = tasks_for([run])
    names = {written.of: written.name for written in read_parts(parts, place)}
    schema = parquet.read_schema(place / names[of_record("queue")])
    assert schema.names == [
        "run",
        "node",
        "boot",
        "app",
        "seq",
        "t_ns",
        "kind",
        "replica",
        "queue",
        "length",
    ]
    assert schema.field("length").type == pa.int64()
