"""A link-state reader of somebody else: registered, by its file, of a package; and all that can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.linkstate.reader import Edge, Reading
from node_agent.linkstate.registry import LINK_STATE_READERS
from node_agent.linkstate.source import Source
from tests.extension.harness import Rove, installed, refused, registered, run_of, written


class SevenHops:
    """Says that every node is seven hops away."""

    metrics = ("hops",)

    def __init__(self, source: Source) -> None:
        self._source = source

    async def read(self) -> Reading:
        own = self._source.node.host
        row = {address: Edge(7.0, hops=7) for address in self._source.names if address != own}
        return Reading({own: row}, "hops", "seven", own_only=True)


HEAD = """\
import asyncio
from node_agent.linkstate import Edge, LinkStateError, Reading


class Reader:
    def __init__(self, source):
        self.source = source
        self.reads = 0

    async def read(self):
        self.reads += 1
        await asyncio.sleep(0.001)
        own = self.source.node.host
        row = {address: Edge(3.0) for address in self.source.names if address != own}
"""
BODY = "        return Reading({own: row}, 'etx', 'mine', own_only=True)\n"


def own(folder: Path, body: str = BODY, reader: str = "my_reader.py:Reader", **changes: Any) -> Path:
    (folder / "my_reader.py").write_text(HEAD + body)
    return small(folder, reader, **changes)


def small(folder: Path, reader: str, **changes: Any) -> Path:
    routing = {"protocol": "ground_truth", "reader": reader}
    return written(folder, routing=routing, switching={"period": "0.5s"}, **changes)


def of_kind(run: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted(run.glob("nodes/*/segments/*.jsonl"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [record for record in found if record["kind"] == kind]


def costs(run: Path) -> set[tuple[float, str, str]]:
    return {(each["cost"], each["metric"], each["source"]) for each in of_kind(run, "link_cost")}


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(LINK_STATE_READERS, seven=SevenHops):
        assert costs(run_of(rove, small(tmp_path, "seven"))) == {(7.0, "hops", "seven")}


def test_named_by_its_file(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, own(tmp_path))
    assert costs(run) == {(3.0, "etx", "mine")}
    (tmp_path / "my_reader.py").unlink()  # the file goes with the run
    assert costs(run_of(rove, run / "spec.yaml")) == {(3.0, "etx", "mine")}


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_readers.py").write_text(HEAD + BODY)
    with installed(tmp_path, LINK_STATE_READERS, {"mine": "somebodys_readers:Reader"}):
        assert costs(run_of(rove, small(tmp_path, "mine"))) == {(3.0, "etx", "mine")}


def test_our_prober_beside_a_protocol(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, small(tmp_path, "probe", warmup="5s"))
    assert {source for _, _, source in costs(run)} == {"probe"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("        return ][", "my_reader.py, line 15: unmatched ']'"),
        ("\n\ndel Reader", "my_reader.py defines no Reader"),
        ("\n\nReader = 3", "my_reader.py:Reader is int, not a class with a method read()"),
        ("        pass\n    del read\n", "my_reader.py:Reader has no method read()"),
        ("    metrics = 'etx'\n", "metrics of my_reader.py:Reader is not a tuple of words"),
    ],
)
def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path, body: str, message: str) -> None:
    said = refused(rove, own(tmp_path, body))
    assert "routing.reader" in said and message in said


def test_what_cannot_be_asked_in_virtual_time(rove: Rove, tmp_path: Path) -> None:
    said = refused(rove, small(tmp_path, "babeld"))
    assert "routing.reader: babeld asks a program on the node" in said
    said = refused(rove, small(tmp_path, "babled"))
    assert 'did you mean "babeld"?' in said


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        ("raise ValueError('not now')", "ValueError: not now"),
        ("while True: pass", "it takes more than 50 ms"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("await asyncio.sleep(60)", "read() takes more than 4.5 s"),
        (
            "at = await self.source.node.datagrams(0, lambda *_: 1 / 0); at.send(b'', at.address)",
            "ZeroDivisionError",
        ),
        (
            "return Reading({own: {'10.77.0.1': Edge(10**400)}}, 'etx', 'mine')",
            "the cost of an Edge is more than 1e+09",
        ),
        ("return 7", "read() returns int, not a Reading"),
        ("return Reading({own: {'10.77.0.1': Edge(-1.0)}}, 'etx', 'mine')", "the cost of an Edge is -1.0"),
        ("return Reading({own: [own]}, 'etx', 'mine')", "edges of a Reading lead from address to address"),
    ],
)
def test_no_agent_dies_of_it(rove: Rove, tmp_path: Path, fails: str, error: str) -> None:
    """The last costs that it told are used while they are good; the verdict names it."""
    file = own(tmp_path, f"        if self.reads > 3:\n            {fails}\n{BODY}", duration="8s")
    finished = rove("run", str(file), "--no-analyze", "--json")
    assert finished.code == 3, finished.err + finished.out
    said = json.loads(finished.out)
    (reason,) = said["reasons"]
    assert "link-state reader my_reader.py:Reader failed" in reason and error in reason
    run = Path(said["directory"])
    assert len(of_kind(run, "agent_stop")) == 4
    assert of_kind(run, "tuple_delivered") and costs(run) == {(3.0, "etx", "mine")}


def test_what_it_says_itself_is_no_failure(rove: Rove, tmp_path: Path) -> None:
    body = f"        if self.reads == 5:\n            raise LinkStateError('the daemon restarts')\n{BODY}"
    run = run_of(rove, own(tmp_path, body))
    assert not of_kind(run, "extension_failed")
