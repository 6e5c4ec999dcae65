"""Tests every verb that reads a run directory with somebody else's, in which every file was changed."""

import contextlib
import io
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from benchmarks.attacks.canary import Canary
from benchmarks.attacks.mutation import changed_bytes, several_changes
from benchmarks.attacks.mutation import encoded as written
from benchmarks.attacks.parser import Forged
from benchmarks.attacks.parsers.specs import changed_yaml
from benchmarks.attacks.sound import copy_of_sound_run
from orchestrator.errors import RoveError
from orchestrator.runs.run_directory import remove_path

SWEEP = {"members": ["sound-1", "../../x", "sound-1.01"], "experiment": "sound"}
NETWORK = {
    "run": "sound-1",
    "directory": "/",
    "owner": 1,
    "nodes": [{"node": "a", "address": "x", "control": "y"}],
}
ENDED = {"reason": "done", "t_ns": 1, "in_order": True}
SUMMARY = {"metrics": {"throughput_fps": 1.0}, "run": "sound-1"}
EXTRA = {
    "sweep.json": SWEEP,
    "network.json": NETWORK,
    "nodes/a/ended.json": ENDED,
    "nodes/b/ended.json": ENDED,
    "summary.json": SUMMARY,
}
FILES = (
    "manifest.json",
    "verdict.json",
    "events.jsonl",
    "journal.jsonl",
    "spec.yaml",
    "radio/links.jsonl",
    "radio/positions.jsonl",
    *EXTRA,
)
VERBS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("status", "--json"),
    ("status", "sound-1"),
    ("status", "sound-1", "--json"),
    ("events", "sound-1"),
    ("events", "sound-1", "--json"),
    ("explain", "sound-1", "--at", "3s"),
    ("explain", "sound-1", "--at", "3s", "--json"),
    ("replay", "sound-1", "--policy", "static"),
    ("exec", "a", "--run", "sound-1", "--", "true"),
    ("collect", "sound-1", "--no-analyze"),
    ("down", "sound-1"),
    ("down", "sound-1", "--json"),
)
ESCAPE = "\x1b"


SPECIAL = ("link to a file", "link to nothing", "link to itself", "directory", "fifo", "link to a device")


class Changed(NamedTuple):
    """``special``: what is in the file's place instead."""

    file: str
    content: bytes
    verb: tuple[str, ...]
    special: str = ""


class RunFiles:
    def __init__(self, directory: Path) -> None:
        from orchestrator.cli.app import app

        self._app: Any = app
        self._canary = Canary(directory / "around")
        self._run = copy_of_sound_run(directory)
        for name, value in EXTRA.items():
            if name.startswith("nodes/"):
                (self._run.path / name).write_bytes(msgspec.json.encode(value))
        self._originals = {
            name: (self._run.path / name).read_bytes() for name in FILES if (self._run.path / name).is_file()
        }
        self._root = str(directory / "runs")
        self._with_code = self._plant_code()

    def _plant_code(self) -> bytes:
        """Writes a query in Python that changes a file elsewhere when it is imported, and a spec that names
        it.
        """
        code = self._run.path / "query" / "theirs.py"
        code.parent.mkdir()
        code.write_text(f"open({str(self._canary.key)!r}, 'a').write('owned')\n")
        spec: dict[str, Any] = yaml.safe_load(self._originals["spec.yaml"])
        return yaml.safe_dump({**spec, "query": {"python": "query/theirs.py:build"}}).encode()

    def draw(self, rng: random.Random) -> Changed:
        name = rng.choice(FILES)
        if rng.random() < 0.05:
            return Changed("spec.yaml", self._with_code, rng.choice(VERBS))
        if rng.random() < 0.1:
            return Changed(name, b"", rng.choice(VERBS), rng.choice(SPECIAL))
        sound = self._originals.get(name) or msgspec.json.encode(EXTRA.get(name, {}))
        if name.endswith(".yaml"):
            content = changed_yaml(sound.decode(), rng)
        elif rng.random() < 0.15:
            content = changed_bytes((sound,), rng)
        elif name.endswith(".jsonl"):
            lines = sound.splitlines() or [b"{}"]
            at = rng.randrange(len(lines))
            lines[at] = written(several_changes(msgspec.json.decode(lines[at]), "json", rng), "json")
            content = b"\n".join(lines) + b"\n"
        else:
            content = written(several_changes(msgspec.json.decode(sound), "json", rng), "json")
        return Changed(name, content, rng.choice(VERBS))

    def feed(self, changed: Changed) -> None:
        path = self._run.path / changed.file
        if changed.special:
            self._place(path, changed.special)
        else:
            path.write_bytes(changed.content)
        try:
            first, *others = changed.verb
            output = self._invoke([first, "--runs-dir", self._root, *others])
            if ESCAPE in output:
                raise Forged(f"rove {' '.join(changed.verb)} printed an escape sequence of the file")
        finally:
            self._restore()
        self._canary.check()

    def _invoke(self, arguments: list[str]) -> str:
        """Returns what the verb prints; it may fail only with a RoveError or an exit code."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                self._app(arguments, standalone_mode=False)
            except (RoveError, SystemExit):
                pass
            except Exception as error:
                if type(error).__module__.split(".")[0] not in ("click", "typer"):
                    raise
        return output.getvalue()

    def _place(self, path: Path, special: str) -> None:
        path.unlink(missing_ok=True)
        match special:
            case "link to a file":
                path.symlink_to(self._canary.key)
            case "link to nothing":
                path.symlink_to(self._canary.home / "new-file")
            case "link to itself":
                path.symlink_to(path)
            case "link to a device":
                path.symlink_to("/dev/zero")
            case "directory":
                path.mkdir()
            case "fifo":
                os.mkfifo(path)

    def _restore(self) -> None:
        for path in self._run.path.iterdir():
            if path.name in self._originals and path.is_file() and not path.is_symlink():
                continue
            if path.is_dir() and not path.is_symlink() and path.name not in FILES:
                continue
            remove_path(path)
        for name, content in self._originals.items():
            file = self._run.path / name
            if file.is_symlink() or not file.is_file():
                remove_path(file)
            file.write_bytes(content)

    def close(self) -> None:
        pass
