"""BonnMotion and ns-2 files: what is written reads back, real files are understood, bad ones name a line."""

import random
from itertools import pairwise
from math import hypot
from pathlib import Path as FilePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BadInput
from orchestrator.mobility.bonnmotion import (
    BonnMotionParams,
    format_movements,
    parse_movements,
    parse_params,
    read_bonnmotion,
    write_bonnmotion,
)
from orchestrator.mobility.ns2 import SNAP_S, format_ns2, parse_ns2, read_ns2, write_ns2
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.trace_file import TraceError
from orchestrator.model.trace import Path, Trace, Waypoint

AREA = (500.0, 400.0)


def roaming(nodes: int = 3) -> Trace:
    return Trace(
        {
            f"n{i}": random_waypoint_path(random.Random(f"{i}"), AREA, (1, 20), (0, 3), 100.0)
            for i in range(nodes)
        }
    )


@st.composite
def paths(draw: st.DrawFn) -> Path:
    """Any legs and pauses of at least a millisecond, up to an hour or so."""
    steps = draw(
        st.lists(
            st.tuples(st.floats(0.001, 500), st.floats(0, AREA[0]), st.floats(0, AREA[1]), st.booleans()),
            max_size=8,
        )
    )
    path = [Waypoint(0.0, draw(st.floats(0, AREA[0])), draw(st.floats(0, AREA[1])))]
    for seconds, x, y, pause in steps:
        last = path[-1]
        path.append(last._replace(t=last.t + seconds) if pause else Waypoint(last.t + seconds, x, y))
    return tuple(path)


traces = st.lists(paths(), min_size=1, max_size=4).map(
    lambda all: Trace({f"n{i}": p for i, p in enumerate(all)})
)


@settings(max_examples=150, deadline=None)
@given(traces)
def test_bonnmotion_reads_back_exactly(trace: Trace) -> None:
    assert parse_movements(format_movements(trace), "f", AREA) == list(trace.paths.values())


@settings(max_examples=150, deadline=None)
@given(traces)
def test_ns2_reads_back_the_same_motion(trace: Trace) -> None:
    back = Trace(dict(zip(trace.paths, parse_ns2(format_ns2(trace), "f", AREA), strict=True)))
    for node, path in trace.paths.items():
        legs = list(pairwise(path))
        fastest = max((hypot(b.x - a.x, b.y - a.y) / (b.t - a.t) for a, b in legs), default=0.0)
        for t in [w.t for w in path] + [(a.t + b.t) / 2 for a, b in legs] + [path[-1].t + 1]:
            (x, y), (back_x, back_y) = trace.position(node, t), back.position(node, t)
            assert hypot(back_x - x, back_y - y) <= 2 * SNAP_S * fastest + 1e-6


@pytest.mark.parametrize("name", ["scenario.movements", "scenario.movements.gz"])
def test_bonnmotion_files(tmp_path: FilePath, name: str) -> None:
    file = tmp_path / name
    write_bonnmotion(file, roaming(), AREA, 100.0)
    first = file.read_bytes()
    assert read_bonnmotion(file, ["n0", "n1", "n2"], AREA).paths == roaming().paths
    assert list(read_bonnmotion(file, ["a", "b"]).paths) == ["a", "b"]
    written = (tmp_path / "scenario.params").read_text()
    assert parse_params(written, "f") == BonnMotionParams(area=AREA, duration=100.0, nodes=3)
    write_bonnmotion(file, roaming(), AREA, 100.0)
    assert file.read_bytes() == first


@pytest.mark.parametrize("name", ["moves.tcl", "moves.tcl.gz"])
def test_ns2_files(tmp_path: FilePath, name: str) -> None:
    write_ns2(tmp_path / name, roaming())
    back = read_ns2(tmp_path / name, ["n0", "n1", "n2"], AREA)
    for t in range(101):
        for node, position in roaming().at(t).items():
            assert back.position(node, t) == pytest.approx(position, abs=1e-4)


def test_bonnmotion_as_generators_write_it() -> None:
    text = "# made by hand\n\n 0.0 1.5E2 2e+1 0.0 150 20 10 1.5e2 30  \r\n\t3.5 7 8\n"
    assert parse_movements(text, "f", AREA) == [
        (Waypoint(0.0, 150.0, 20.0), Waypoint(10.0, 150.0, 30.0)),
        (Waypoint(3.5, 7.0, 8.0),),
    ]


def test_bonnmotion_in_three_dimensions_is_read_if_flat(tmp_path: FilePath) -> None:
    file = tmp_path / "s.movements"
    (tmp_path / "s.params").write_text("model=RandomWaypoint\nx=9.0\ny=9.0\nz=9.0\nnn=1\nJ=3D\n")
    file.write_text("0 1 2 5 1 2 3 5\n")
    assert read_bonnmotion(file, ["a"]).paths == {"a": (Waypoint(0, 1, 2), Waypoint(1, 2, 3))}
    file.write_text("0 1 2 5 1 2 3 6\n")
    with pytest.raises(TraceError, match="plane"):
        read_bonnmotion(file, ["a"])


def test_ns2_as_generators_write_it() -> None:
    text = """\
#
# nodes: 2, pause: 2.00, max speed: 5.00
#
set opt(stop) 900

$node_(2) set X_ 10.0 ;# the second
$node_(2) set Y_ 1.0e1
$node_(2) set Z_ 0.000000000000
$god_ set-dist 1 2 1
  # ID of SUMO: f0_1
$node_(1) set X_ 0.0
$node_(1) set Y_ 0.0
$node_(1) set Z_ 0.0
$ns_ at 2.0 "$node_(2) setdest 20.0 10.0 5.0"
$ns at 1.0 "$node_(1) setdest 0.0 30.0 10.0";
$ns_ at 3.0 "$god_ set-dist 1 2 2"
$ns_ at 10.0 "$node_(2) setdest 20.0 10.0 0.000000000000"
# $ns_ at 11.0 "$node_(2) setdest 20.0 10.0 NaN"
"""
    first, second = parse_ns2(text, "f", AREA)
    assert first == (Waypoint(0, 0, 0), Waypoint(1, 0, 0), Waypoint(4, 0, 30))
    assert second == (Waypoint(0, 10, 10), Waypoint(2, 10, 10), Waypoint(4, 20, 10), Waypoint(10, 20, 10))


def test_a_new_setdest_interrupts_the_leg_under_way() -> None:
    text = """\
$node_(0) set X_ 0
$node_(0) set Y_ 0
$ns_ at 0.0 "$node_(0) setdest 100 0 10"
$ns_ at 4.0 "$node_(0) setdest 40 60 20"
$ns_ at 9.0 "$node_(0) setdest 0 60 1"
"""
    (path,) = parse_ns2(text, "f")
    assert path == (
        Waypoint(0, 0, 0),
        Waypoint(4, 40, 0),
        Waypoint(7, 40, 60),
        Waypoint(9, 40, 60),
        Waypoint(49, 0, 60),
    )
    assert Trace({"a": path}).position("a", 1000) == (0, 60)


def test_of_two_setdest_at_one_moment_the_later_line_counts() -> None:
    text = """\
$node_(0) set X_ 0
$node_(0) set Y_ 0
$ns_ at 1 "$node_(0) setdest 100 0 10"
$ns_ at 1 "$node_(0) setdest 0 10 10"
"""
    assert parse_ns2(text, "f") == [(Waypoint(0, 0, 0), Waypoint(1, 0, 0), Waypoint(2, 0, 10))]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("0 1 1 5 2 2\n\n0 1 1 5 2 2 4 3 3\n", 3, "time runs backwards: 4.0 s after 5.0 s"),
        ("0 1 1\n0 nan 1\n", 2, "x is not finite"),
        ("0 1 inf\n", 1, "y is not finite"),
        ("-1 1 1\n", 1, "time is negative"),
        ("0 1 1 10 501 1\n", 1, r"position \(501, 1\) lies outside the area of 500 m × 400 m"),
        ("0 1 1 10 1 -0.1\n", 1, "outside the area"),
        ("0 1 1 10 1\n", 1, "5 numbers do not divide"),
        ("# x\n0 1 one\n", 2, "y is not a number: 'one'"),
        ("0 1 1 0 2 2\n", 1, "two places"),
    ],
)
def test_bad_bonnmotion(text: str, line: int, message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        parse_movements(text, "some.movements", AREA)
    assert (caught.value.file, caught.value.line) == ("some.movements", line)
    assert str(caught.value).startswith(f"some.movements:{line}: ")
    assert isinstance(caught.value, BadInput)


START = "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            START + '$ns_ at 5 "$node_(0) setdest 1 1 1"\n$ns_ at 4 "$node_(0) setdest 2 2 1"',
            4,
            "time runs backwards: 4.0 s after 5.0 s",
        ),
        (START + '$ns_ at -5 "$node_(0) setdest 1 1 1"', 3, "time is negative"),
        (START + '$ns_ at nan "$node_(0) setdest 1 1 1"', 3, "time is not finite"),
        (START + '$ns_ at 1 "$node_(0) setdest 1 inf 1"', 3, "y is not finite"),
        (START + '$ns_ at 1 "$node_(0) setdest 1 401 1"', 3, "outside the area"),
        ("$node_(0) set X_ 501\n$node_(0) set Y_ 1\n", 2, "outside the area"),
        ("$node_(0) set X_ nan\n$node_(0) set Y_ 1\n", 1, "X_ is not finite"),
        (START + '$ns_ at 1 "$node_(0) setdest 1 1 0"', 3, "speed 0 m/s, but the destination is 1.414"),
        (START + '$ns_ at 1 "$node_(0) setdest 1 1 -2"', 3, "speed -2 m/s"),
        (START + '$ns_ at 1 "$node_(0) setdest 1 1 5e-324"', 3, "never reached"),
        (START + '$ns_ at 1 "$node_(1) setdest 1 1 1"', 3, "node 1 moves but has no initial position"),
        (START + '$ns_ at 1 "$node_(0) set X_ 4"', 3, "neither an initial position nor a setdest"),
        (START + '$ns_ at 1 "$node_(0) setdest 1 1 1', 3, "neither an initial position nor a setdest"),
        (START + "$node_(0) set X_ 3", 3, "X_ of node 0 is set a second time"),
        ("\x00\x01", 1, "neither"),
        ("$node_(0) set X_ 0\n", None, "node 0 has no initial Y_"),
        (
            START + "$node_(0) set Z_ 0\n$node_(1) set X_ 0\n$node_(1) set Y_ 0\n$node_(1) set Z_ 9",
            None,
            "plane",
        ),
    ],
)
def test_bad_ns2(text: str, line: int | None, message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        parse_ns2(text, "some.tcl", AREA)
    assert (caught.value.file, caught.value.line) == ("some.tcl", line)


def test_a_file_with_fewer_nodes_than_the_topology(tmp_path: FilePath) -> None:
    movements, tcl = tmp_path / "a.movements", tmp_path / "a.tcl"
    movements.write_text("0 1 1\n")
    tcl.write_text(START)
    for read, file in (read_bonnmotion, movements), (read_ns2, tcl):
        with pytest.raises(TraceError, match="moves 1 nodes, but the topology has 2"):
            read(file, ["a", "b"])


def test_params_that_contradict_the_movements(tmp_path: FilePath) -> None:
    (tmp_path / "a.movements").write_text("0 1 1\n")
    (tmp_path / "a.params").write_text("model=RandomWaypoint\nnn=7\n")
    with pytest.raises(TraceError, match=r"moves 1 nodes, but a\.params says 7"):
        read_bonnmotion(tmp_path / "a.movements", ["a"])
    (tmp_path / "a.params").write_text("model=DisasterArea\n")
    with pytest.raises(TraceError, match=r"a\.params:1: DisasterArea"):
        read_bonnmotion(tmp_path / "a.movements", ["a"])


def test_files_that_cannot_be_read(tmp_path: FilePath) -> None:
    (tmp_path / "torn.movements.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    (tmp_path / "plain.movements.gz").write_text("0 1 1\n")
    (tmp_path / "binary.movements").write_bytes(b"\xff\xfe\x00")
    for name in "torn.movements.gz", "plain.movements.gz", "binary.movements", "absent.movements":
        with pytest.raises(TraceError, match="cannot be read"):
            read_bonnmotion(tmp_path / name, ["a"])


def test_a_jump_cannot_be_written_for_ns2() -> None:
    with pytest.raises(BadInput, match="a jumps at 1 s"):
        format_ns2(Trace({"a": (Waypoint(1, 0, 0), Waypoint(1, 5, 5))}))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "$node_(0) set X_ ",
                "$node_(0) set Y_ ",
                '$ns_ at 1 "$node_(0) setdest ',
                '"',
                "\n",
                "1 ",
                "-3e400 ",
            ]
        )
        | st.floats().map(lambda x: f"{x} ")
        | st.text(max_size=3),
        max_size=30,
    ).map("".join)
)
def test_any_text_is_read_or_refused_with_a_trace_error(text: str) -> None:
    for parse in parse_ns2, parse_movements:
        try:
            found = parse(text, "f", AREA)
        except TraceError:
            continue
        assert all(a.t <= b.t for path in found for a, b in pairwise(path))
