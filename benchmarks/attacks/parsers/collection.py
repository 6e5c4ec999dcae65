"""A node that lies about its record: the listing, the archives and the files that `collect` fetches from it.

The commands of ``collect`` run for real, in a directory of this machine that stands for the node's place;
their answers are then changed. So the test covers any command that collection uses.
"""

import asyncio
import contextlib
import io
import random
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.attacks.canary import Canary
from benchmarks.attacks.mutation import changed_bytes
from benchmarks.attacks.names import hostile_name
from orchestrator.backends.remote.collection import collect
from orchestrator.errors import RoveError
from orchestrator.ssh.command import Completed

CONTENTS = {
    "record/segments/b0001-s000001.jsonl": b'{"run":"r"}\n' * 30,
    "record/agent.log": b"words\n",
    "record/frames/latest.jpg": bytes(300_000),
    "ended.json": b'{"reason":"done","in_order":true}\n',
}


class Lie(NamedTuple):
    """``names``: the names that the node gives its files.
    ``where``: which answer is damaged, counted from 0.
    """

    names: tuple[tuple[str, str], ...]
    where: int
    seed: int
    archive: str


class _Host:
    name = "n1"


class LyingNode:
    """Stands for ``orchestrator.ssh.connection.Connection``."""

    host = _Host()

    def __init__(self, place: Path, lie: Lie, cache: dict[Any, Completed]) -> None:
        self._place = place
        self._lie = lie
        self._cache = cache
        self._asked = 0

    async def ensure(self, timeout: float) -> None:
        pass

    async def run(self, argv: Sequence[str], input: bytes = b"", **options: Any) -> Completed:
        number, self._asked = self._asked, self._asked + 1
        if "tar" in argv[0]:
            done = Completed(0, self._archive(input), b"")
        else:
            key = tuple(argv), input
            if key not in self._cache:
                made = subprocess.run(  # noqa: ASYNC221
                    list(argv), input=input, capture_output=True, timeout=20, check=False
                )
                self._cache[key] = Completed(made.returncode, made.stdout, made.stderr)
            done = self._cache[key]
        stdout = done.stdout
        for true, claimed in self._lie.names:
            stdout = stdout.replace(true.encode(), claimed.encode(errors="surrogateescape"))
        if number == self._lie.where and stdout:
            stdout = changed_bytes((stdout,), random.Random(self._lie.seed))
        return done._replace(stdout=stdout)

    async def output(self, argv: Sequence[str], **options: Any) -> bytes | str:
        done = await self.run(argv, **options)
        return done.stdout.decode(errors="replace")

    async def download(self, remote: str, local: Path, *arguments: Any, **options: Any) -> str:
        """Writes the answer into ``local``, whatever that is."""
        import hashlib

        content = self._content(remote.removeprefix(f"{self._place}/"))
        await asyncio.to_thread(local.write_bytes, content)
        return hashlib.sha256(content).hexdigest()

    def _content(self, name: str) -> bytes:
        for true, claimed in self._lie.names:
            if claimed == name:
                return CONTENTS[true]
        return CONTENTS.get(name, b"")

    def _archive(self, wanted: bytes) -> bytes:
        """Returns an archive with the requested files, or with others."""
        made = io.BytesIO()
        names = [name.decode(errors="surrogateescape") for name in wanted.split(b"\0") if name]
        with tarfile.open(fileobj=made, mode="w") as archive:
            for name in names:
                entry = tarfile.TarInfo(name)
                content = self._content(name)
                entry.size = len(content)
                match self._lie.archive:
                    case "links":
                        entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/etc/passwd", 0
                    case "hard links":
                        entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, names[-1], 0
                    case "devices":
                        entry.type, entry.size = tarfile.CHRTYPE, 0
                    case "twice":
                        archive.addfile(entry, io.BytesIO(content))
                    case "headers":
                        entry.pax_headers = {"path": "../../../etc/passwd", "size": "99999999999"}
                archive.addfile(entry, io.BytesIO(content) if entry.isfile() else None)
        return made.getvalue()


class Collections:
    def __init__(self, directory: Path) -> None:
        self._canary = Canary(directory / "here")
        self._place = directory / "there"
        for name, content in CONTENTS.items():
            file = self._place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        self._cache: dict[Any, Completed] = {}
        self._runner = asyncio.Runner()

    def draw(self, rng: random.Random) -> Lie:
        aims, inside = self._canary.targets(), self._canary.inside
        true = rng.sample(list(CONTENTS), k=rng.choice((0, 1, 1, 1, 2)))
        names = tuple((name, hostile_name(aims, inside, rng)) for name in true)
        archives = ("", "", "", "links", "hard links", "devices", "twice", "headers")
        where = rng.randrange(3) if not names or rng.random() < 0.2 else -1
        return Lie(names, where, rng.getrandbits(32), rng.choice(archives))

    def feed(self, lie: Lie) -> None:
        into = self._canary.inside
        node: Any = LyingNode(self._place, lie, self._cache)
        with contextlib.suppress(RoveError):
            self._runner.run(collect(node, str(self._place), into))
        self._canary.check()
        shutil.rmtree(into)
        into.mkdir()

    def close(self) -> None:
        self._runner.close()
