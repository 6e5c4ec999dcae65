"""Telemetry of a node that lies: records, segment names, and things that are not files at all.

A record that claims to be another node's must make the run invalid; everything else must at least be judged.
"""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.attacks.mutation import changed_bytes, deep, several_changes
from benchmarks.attacks.mutation import encoded as written
from benchmarks.attacks.parser import Forged
from benchmarks.attacks.sound import copy_of_sound_run
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.telemetry.segments import read_records
from orchestrator.apps.dataflow.decisions.history import read_history
from orchestrator.errors import RoveError
from orchestrator.lifecycle.rejudging import read_verdict, rejudge
from orchestrator.planning.load import load_experiment
from orchestrator.runs.verdict import Judgement

NAME = "b0001-s000001.jsonl"
ODD_NAMES = (
    "b0001-s000003.jsonl",
    "b0002-s000001.jsonl",
    "b9999999999-s000001.jsonl",
    "b00000000000000000001-s000001.jsonl",
    "b0001-s0000000001.jsonl",
    "b٠٠٠١-s٠٠٠٠٠١.jsonl",
    "b0000-s000000.jsonl",
    "b0001-s000001.jsonl.gz",
    "b0001-s000001.jsonl~",
    "x" * 200,
    "b" + "9" * 200 + "-s000001.jsonl",
)
MOST_READ = 200_000

Record = dict[str, Any]


class Forgery(NamedTuple):
    """``files`` by name: content, or what is in its place. ``must_fail``: why the run is not valid."""

    node: str
    files: tuple[tuple[str, bytes], ...]
    special: str = ""
    must_fail: str = ""


def _renumbered(records: list[Record]) -> bytes:
    """Numbers the records without gaps, so that only their content is wrong."""
    return b"".join(msgspec.json.encode({**each, "seq": seq}) + b"\n" for seq, each in enumerate(records))


def claim(records: list[Record], node: str, rng: random.Random) -> tuple[list[Record], str]:
    """Returns the records with something in them that this node cannot know, and what that is."""
    at = rng.randrange(1, len(records))
    base = {**records[at], "node": node}
    others = [name for name in "abcde" if name != node]
    delivered = {
        "kind": "tuple_delivered",
        "replica": "screen/0",
        "origin": "camera/0",
        "tau": rng.randrange(1, 100),
        "size": 1000,
        "born_ns": base["t_ns"],
    }
    envelope = {key: base[key] for key in ("run", "node", "boot", "seq", "t_ns")}
    choice = rng.randrange(5)
    if choice == 0:
        forged, why = {**base, "node": rng.choice(others)}, "it names another node"
    elif choice == 1:
        forged, why = {**base, "run": "another-run"}, "it names another run"
    elif choice == 2 and node != "d":
        forged, why = {**envelope, **delivered}, "it tells of a delivery at another node's sink"
    elif choice == 3 and node != "a":
        emitted = {"kind": "tuple_emitted", "replica": "camera/0", "origin": "camera/0", "tau": 1, "size": 1}
        forged, why = {**envelope, **emitted}, "it tells of another node's source"
    else:
        forged, why = (
            {**envelope, **delivered, "replica": "nobody/7"},
            "it tells of a replica that there is not",
        )
    return [*records[:at], forged, *records[at:]], why


def place_special(segments: Path, special: str, other: Path) -> None:
    """Puts something that is not a file where the next segment would be;
    ``other``: another node's segments.
    """
    second = segments / "b0001-s000002.jsonl"
    match special:
        case "symlink":
            second.symlink_to(other / NAME)
        case "outside":
            second.symlink_to("/dev/zero")
        case "loop":
            second.symlink_to(second)
        case "directory":
            second.mkdir()
        case "fifo":
            os.mkfifo(second)


class Segments:
    def __init__(self, directory: Path) -> None:
        self._run = copy_of_sound_run(directory)
        self._experiment = load_experiment(self._run.spec)
        self._lines: dict[str, list[Record]] = {}
        for node in self._experiment.topology.node_names:
            data = (self._run.segments(node) / NAME).read_bytes()
            self._lines[node] = [msgspec.json.decode(line) for line in data.splitlines()]
        self._sound = directory / "sound"
        shutil.copytree(self._run.path, self._sound)

    def draw(self, rng: random.Random) -> Forgery:
        node = rng.choice(list(self._lines))
        records = self._lines[node]
        choice = rng.random()
        if choice < 0.3:
            forged, why = claim(records, node, rng)
            return Forgery(node, ((NAME, _renumbered(forged)),), must_fail=why)
        if choice < 0.6:
            at = rng.randrange(len(records))
            line = written(several_changes(records[at], "json", rng), "json")
            lines = [msgspec.json.encode(each) for each in records]
            return Forgery(node, ((NAME, b"\n".join([*lines[:at], line, *lines[at + 1 :], b""])),))
        sound = _renumbered(records)
        if choice < 0.75:
            return Forgery(node, ((NAME, changed_bytes((sound,), rng)),))
        if choice < 0.8:
            line = written({**records[-1], "x": deep(rng.choice((100, 900, 5000)), "json", rng)}, "json")
            return Forgery(node, ((NAME, sound + line + b"\n"),))
        if choice < 0.85:
            many = {**records[-2], "kind": "tuple_emitted", "replica": "camera/0", "origin": "camera/0"}
            count = rng.choice((0, -1, 3_000_000_000, 2**62, 10**6))
            emitted = {**many, "tau": 1, "size": rng.choice((0, 1, count)), "tuples": count}
            return Forgery("a", ((NAME, _renumbered([*self._lines["a"], emitted])),))
        if choice < 0.95:
            names = rng.sample(ODD_NAMES, 2)
            return Forgery(node, ((NAME, sound), *((name, sound[: rng.randrange(200)]) for name in names)))
        special = rng.choice(("symlink", "outside", "loop", "directory", "fifo"))
        return Forgery(node, ((NAME, sound),), special)

    def feed(self, forgery: Forgery) -> None:
        segments = self._run.segments(forgery.node)
        shutil.rmtree(segments)
        segments.mkdir()
        for name, content in forgery.files:
            with suppress(OSError, ValueError):  # the file system may not accept such a name
                (segments / name).write_bytes(content)
        place_special(segments, forgery.special, self._run.segments("a"))
        try:
            self._judge(forgery)
        finally:
            self._restore(segments, forgery.node)

    def _judge(self, forgery: Forgery) -> None:
        verdict = rejudge(self._run, self._experiment, ())
        assert read_verdict(self._run) == verdict, "verdict.json does not say what was judged"
        if forgery.must_fail and verdict.verdict is Judgement.VALID:
            raise Forged(f"the run is valid although {forgery.must_fail}")
        if forgery.special and verdict.verdict is Judgement.VALID:
            raise Forged(f"the run is valid with a {forgery.special} among its segments")
        self._read(lambda: sum(1 for _ in islice(self._all(forgery.node), MOST_READ)))
        self._read(lambda: read_history(self._run))

    def _all(self, node: str) -> Any:
        return tuple_by_tuple(read_records(self._run.segments(node)))

    def _read(self, what: Callable[[], object]) -> None:
        with suppress(RoveError):
            what()

    def _restore(self, segments: Path, node: str) -> None:
        shutil.rmtree(segments)
        shutil.copytree(self._sound / "nodes" / node / "segments", segments)
        for name in ("verdict.json", "manifest.json", "events.jsonl"):
            shutil.copy(self._sound / name, self._run.path / name)

    def close(self) -> None:
        pass
