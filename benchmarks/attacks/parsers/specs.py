"""Hostile experiment and topology files, traces and loss tables."""

import contextlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.attacks.mutation import TRICKY_TEXTS, changed_bytes, several_changes
from orchestrator.errors import RoveError
from orchestrator.mobility.formats import read_trace
from orchestrator.planning.load import load_any
from orchestrator.radio.path_loss.loss_file import read_losses

PROJECT = Path(__file__).parents[3]
SOUND = ("line.yaml", "lab.yaml", "pi-lab.yaml", "paper-25.yaml", "quickstart.yaml")
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
)
SNIPPETS = (
    BOMB,
    "x: " + "[" * 5000,
    "x: " + "[" * 500 + "]" * 500,
    "{" * 2000,
    "? " * 3000 + "x",
    "- " * 3000 + "x",
    "x: !!python/object/apply:os.system [id]",
    "x: !!binary aGVsbG8=",
    "<<: *nobody",
    "x: &x *x",
    "x: 1\nx: 2",
    "--- 1\n--- 2",
    "%YAML 9.9\n---\nx: 1",
    "x: |\n" + "  y\n" * 20_000,
    "x: 1e999999",
    "x: " + "9" * 10_000,
    "x: .nan",
    "x: 2001-99-99",
    "x: 1:1:1:1",
    "\t- x",
    "x: \x1b[2J",
    "\ufeffx: 1",
    "x: '" + "é" * 70_000 + "'",
)


def changed_yaml(text: str, rng: random.Random) -> bytes:
    choice = rng.random()
    if choice < 0.7:
        value: Any = _without_raw(several_changes(yaml.safe_load(text), "json", rng), 0)
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode(errors="replace")
    if choice < 0.85:
        snippet = rng.choice(SNIPPETS)
        lines = text.splitlines()
        at = rng.randrange(len(lines) + 1)
        return "\n".join([*lines[:at], snippet, *lines[at:]]).encode()
    return changed_bytes((text.encode(),), rng)


def _without_raw(value: Any, depth: int) -> Any:
    """Turns what only JSON can express into text; YAML can be nested by itself."""
    if isinstance(value, dict):
        return {(str(k)): _without_raw(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_raw(v, depth + 1) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return bytes(value)[:3000].decode("latin-1")


class Specs:
    def __init__(self, directory: Path) -> None:
        self._folder = directory / "experiments"
        self._folder.mkdir()
        shutil.copytree(PROJECT / "topologies", directory / "topologies")
        self._texts = [(PROJECT / "experiments" / name).read_text() for name in SOUND]
        topologies = sorted((PROJECT / "topologies").glob("*.yaml"))
        self._texts += [path.read_text().replace("file: ", "file: ../topologies/") for path in topologies]

    def draw(self, rng: random.Random) -> bytes:
        return changed_yaml(rng.choice(self._texts), rng)

    def feed(self, message: bytes) -> None:
        file = self._folder / "hostile.yaml"
        file.write_bytes(message)
        with contextlib.suppress(RoveError):
            load_any(file)

    def close(self) -> None:
        pass


class Table(NamedTuple):
    name: str
    content: bytes


class Tables:
    """Movements as BonnMotion, ns-2 and SUMO write them, and link losses."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        folder = PROJECT / "topologies"
        ns2 = (
            b"$node_(0) set X_ 1.0\n$node_(0) set Y_ 2.0\n$node_(1) set X_ 5\n$node_(1) set Y_ 6\n"
            b'$ns_ at 1.0 "$node_(0) setdest 10.0 20.0 1.5"\n'
        )
        self._sound = {
            "t.movements": (folder / "recorded-6.movements").read_bytes(),
            "t.params": (folder / "recorded-6.params").read_bytes(),
            "t.ns2": ns2,
            "t.fcd": b'<fcd-export> <timestep time="0"> '
            + b" ".join(b'<vehicle id="%d" x="1" y="2" speed="3" />' % id for id in range(3))
            + b" </timestep> </fcd-export>",
            "l.csv": b"src,dst,loss_db\na,b,80\nb,c,inf\n",
            "lt.csv": b"t,src,dst,loss_db\n0,a,b,80\n1.5,a,b,90\n",
        }
        for name, content in self._sound.items():
            (directory / name).write_bytes(content)

    def draw(self, rng: random.Random) -> Table:
        name = rng.choice(list(self._sound))
        content = self._sound[name]
        if rng.random() < 0.7:
            words = content.split(b" ")
            at = rng.randrange(len(words))
            number = rng.choice(
                (b"nan", b"inf", b"-1", b"1e400", b"9" * 500, b"0x1", b"", b"1e308", b"-1e-400")
            )
            words[at] = rng.choice((number, rng.choice(TRICKY_TEXTS[:-2]).encode(errors="replace")))
            content = b" ".join(words)
        return Table(name, content if rng.random() < 0.3 else changed_bytes((content,), rng))

    def feed(self, table: Table) -> None:
        file = self._directory / table.name
        file.write_bytes(table.content)
        nodes = ("a", "b", "c")
        readers: dict[str, Callable[[], object]] = {
            "t.movements": lambda: read_trace(file, "bonnmotion", nodes, (1000.0, 1000.0)),
            "t.params": lambda: read_trace(
                self._directory / "t.movements", "bonnmotion", nodes, (1000.0, 1000.0)
            ),
            "t.ns2": lambda: read_trace(file, "ns2", nodes[:2], (1000.0, 1000.0)),
            "t.fcd": lambda: read_trace(file, "fcd", nodes, (1000.0, 1000.0)),
            "l.csv": lambda: read_losses(file, nodes, timed=False),
            "lt.csv": lambda: read_losses(file, nodes, timed=True),
        }
        try:
            readers[table.name]()
        except RoveError:
            pass
        finally:
            file.write_bytes(self._sound[table.name])

    def close(self) -> None:
        pass
