"""Traces of flows from files."""

import gzip
from pathlib import Path

import pytest

from node_agent.apps.flows.model import Trace
from orchestrator.apps.flows.trace_file import read_flow_trace
from orchestrator.mobility.trace_file import TraceError


def test_a_trace(tmp_path: Path) -> None:
    text = "# a comment\nt,size\n0,100\n\n0.25, 1400\n0.25,42\n"
    plain, packed = tmp_path / "web.csv", tmp_path / "web.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    expected = Trace((0, 250_000_000, 250_000_000), (100, 1400, 42))
    assert read_flow_trace(plain, "udp") == read_flow_trace(packed, "udp") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the file is empty"),
        ("t,size\n", r"lists no packet"),
        ("time,bytes\n", r":1: the first line must be t,size"),
        ("t,size\n0,100,7\n", r":2: 3 values, expected 2"),
        ("t,size\n0,100\nx,100\n", r":3: t is not a number: 'x'"),
        ("t,size\n-1,100\n", r":2: t is -1 s"),
        ("t,size\nnan,100\n", r":2: t is not finite"),
        ("t,size\n2,100\n1,100\n", r":3: time runs backwards: 1 s after 2 s"),
        ("t,size\n0,1.5\n", r":2: size is not a whole number of bytes"),
        ("t,size\n0,41\n", r":2: size is 41 bytes: a UDP packet has 42 to 1472"),
        ("t,size\n0,1473\n", r":2: size is 1473 bytes"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "web.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_flow_trace(file, "udp")


def test_chunks_may_be_larger_than_datagrams(tmp_path: Path) -> None:
    file = tmp_path / "web.csv"
    file.write_text("t,size\n0,65536\n")
    assert read_flow_trace(file, "tcp").sizes == (65536,)
    file.write_text("t,size\n0,65537\n")
    with pytest.raises(TraceError, match="a TCP packet has 42 to 65536"):
        read_flow_trace(file, "tcp")
