"""What a node lists as its record: names are data, odd ones are refused one by one, and all is bounded."""

import asyncio
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from node_agent.model.refusals import Refusal
from orchestrator.backends.remote import listing
from orchestrator.backends.remote.collection import Collected, collect, note_refused, refused_before
from orchestrator.backends.remote.listing import LIST, Listed, batches, read_listing
from orchestrator.runs import run_directory
from orchestrator.runs.files import parse_lines
from orchestrator.spec.inventory import Host
from orchestrator.ssh.command import Completed
from orchestrator.ssh.errors import CommandFailed, DiskFull, TransferBroken

DIGEST = "ab" * 32
SEGMENT = "record/segments/b0001-s000001.jsonl"


def listed(*names: str | bytes, size: int = 1, kind: str = "f") -> bytes:
    """As a node lists them."""
    raw = [name if isinstance(name, bytes) else name.encode() for name in names]
    sized = b"".join(b"%b %d %b\0" % (kind.encode(), size, name) for name in raw)
    return sized + b"\0" + b"".join(b"%b  %b\0" % (DIGEST.encode(), name) for name in raw)


def names(found: listing.Listing) -> list[str]:
    return [file.name for file in found.files]


def test_a_list_is_read_with_sizes_digests_and_targets(tmp_path: Path) -> None:
    found = read_listing("n1", listed("record/a b.log", SEGMENT, "ended.json", size=3), tmp_path)
    assert found.files == (
        Listed("ended.json", 3, DIGEST, tmp_path / "ended.json"),
        Listed("record/a b.log", 3, DIGEST, tmp_path / "a b.log"),
        Listed(SEGMENT, 3, DIGEST, tmp_path / "segments" / "b0001-s000001.jsonl"),
    )
    assert (found.refused, found.unreadable, found.bytes) == ((), (), 9)
    for empty in (b"", b"\0"):
        assert read_listing("n1", empty, tmp_path) == listing.Listing(())


@pytest.mark.parametrize(
    "name",
    [
        "record//home/user/.ssh/authorized_keys",
        "record//etc/cron.d/x",
        "/etc/passwd",
        "record/../../x",
        "record/./x",
        "record/a//b",
        "../x",
        "record/..",
        "record/",
        "record",
        "other/x",
        "ended.json/x",
        "record/ended.json",
        "record/.hidden",
        "record/.x.0123456789abcdef.part",
        "record/new\nline",
        "record/\x1b]0;title\x07",
        "record/\u202egnp.exe",
        "record/back\\slash",
        "record/segments/other.jsonl",
        "record/segments/b0001-s000001.jsonl/x",
        "record/segments/b" + "9" * 5000 + "-s000001.jsonl",
        "record/" + "x" * 300,
        "record/" + "x/" * 50 + "y",
        b"record/\xff\xfe",
    ],
    ids=lambda name: ascii(name)[:40],
)
def test_an_odd_name_is_refused_and_the_others_are_fetched(name: str | bytes, tmp_path: Path) -> None:
    found = read_listing("n1", listed("record/agent.log", name, SEGMENT), tmp_path)
    assert names(found) == ["record/agent.log", SEGMENT]
    assert all(file.target.is_relative_to(tmp_path) for file in found.files)
    assert found.refused == (Refusal("file", "n1", "name", 1),)


@pytest.mark.parametrize("kind", ["l", "p", "s", "b", "c", "D"])
def test_what_is_no_file_is_refused(kind: str, tmp_path: Path) -> None:
    found = read_listing("n1", listed("record/agent.log", kind=kind), tmp_path)
    assert found.files == () and found.refused == (Refusal("file", "n1", "not a file", 1),)


def test_no_name_leads_out_by_a_link_that_is_here_already(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "frames").symlink_to(outside)
    found = read_listing("n1", listed("record/frames/a.jpg"), tmp_path / "n1")
    assert found.files == () and found.refused == (Refusal("file", "n1", "name", 1),)


def test_no_file_is_below_another(tmp_path: Path) -> None:
    found = read_listing("n1", listed("record/frames", "record/frames/a/b.jpg"), tmp_path)
    assert names(found) == ["record/frames"] and found.refused == (Refusal("file", "n1", "name", 1),)


@pytest.mark.parametrize(
    "entry", [b"f -5 record/a", b"f 1e9 record/a", b"f " + b"9" * 5000 + b" record/a", b"rubbish", b"f 1 "]
)
def test_an_entry_that_is_none_is_refused(entry: bytes, tmp_path: Path) -> None:
    found = read_listing("n1", entry + b"\0" + listed("record/b"), tmp_path)
    assert names(found) == ["record/b"] and [each.count for each in found.refused] == [1]


def test_a_file_without_a_digest_could_not_be_read(tmp_path: Path) -> None:
    output = b"f 1 record/a\0f 1 record/b\0\0" + DIGEST.encode() + b"  record/b\0" + b"no digest  record/a\0"
    found = read_listing("n1", output, tmp_path)
    assert names(found) == ["record/b"] and found.unreadable == ("record/a",)


def test_a_record_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"its record has 182 GiB, more than 64 GiB"):
        read_listing("n1", listed(*(f"record/{n}" for n in range(2)), size=97_656_250_000), tmp_path)
    found = read_listing("n1", listed("ended.json", size=10**6), tmp_path)
    assert found.refused == (Refusal("file", "n1", "size", 1),)


def test_small_files_come_many_at_once_but_not_too_many(tmp_path: Path) -> None:
    files = [Listed(f"record/{number}", 200_000, DIGEST, tmp_path) for number in range(25)]
    found = list(batches(files, 2 << 20, 500))
    assert [file for batch in found for file in batch] == files
    assert all(sum(file.size for file in batch) <= 2 << 20 for batch in found) and len(found) == 3
    assert len(list(batches(files, 1 << 30, 10))) == 3
    assert list(batches([], 1, 1)) == []


class Here:
    """A connection to this machine; ``says`` is listed in place of what is there."""

    def __init__(self, says: bytes | None = None) -> None:
        self.host = Host("n1", "192.0.2.1", 22, "pi")
        self.alive = True
        self.downloads: list[str] = []
        self._says = says

    async def ensure(self, timeout: float) -> None: ...

    async def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Completed:
        if self._says is not None and LIST in argv:
            return Completed(0, self._says, b"")
        done = await asyncio.to_thread(subprocess.run, argv, input=input, capture_output=True, timeout=20)
        return Completed(done.returncode, done.stdout, done.stderr)

    async def download(self, remote: str, local: Path, size: int, digest: str) -> None:
        self.downloads.append(remote)
        data = await asyncio.to_thread(lambda: Path(remote).read_bytes()[:size])
        if hashlib.sha256(data).hexdigest() != digest:
            raise TransferBroken("n1", f"{remote}: arrived damaged")
        await asyncio.to_thread(local.write_bytes, data)


def collected(connection: Here, place: Path, into: Path) -> Collected:
    return asyncio.run(collect(connection, str(place), into))  # type: ignore[arg-type]


def put(place: Path, *names: str | bytes) -> None:
    for name in names:
        path = place / (name if isinstance(name, str) else name.decode(errors="surrogateescape"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)


def test_odd_names_in_a_real_directory_spoil_nothing(tmp_path: Path) -> None:
    place, into = tmp_path / "place", tmp_path / "here"
    put(place, "record/agent.log", SEGMENT, "record/frames/of two words.jpg", "record/-rf", "ended.json")
    put(place, "record/new\nline", "record/\x1b[2J", b"record/\xff", "record/.hidden", "secret.json")
    (place / "record" / "link").symlink_to("/etc/passwd")
    found = collected(Here(), place, into)
    files = sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file())
    assert files == [
        "-rf",
        "agent.log",
        "ended.json",
        "frames/of two words.jpg",
        "segments/b0001-s000001.jsonl",
    ]
    counts = {refusal.reason: refusal.count for refusal in found.refused}
    assert counts == {"name": 4, "not a file": 1} and (found.files, found.bytes) == (5, 50)
    assert into.stat().st_mode & 0o777 == 0o700 == (into / "frames").stat().st_mode & 0o777
    assert {path.stat().st_mode & 0o777 for path in into.rglob("*") if path.is_file()} == {0o600}


def test_a_record_that_is_a_link_is_none(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "record").symlink_to("/etc")
    assert collected(Here(), place, tmp_path / "here").files == 0


def test_a_file_that_changes_does_not_keep_the_others_from_arriving(tmp_path: Path) -> None:
    place, into = tmp_path / "place", tmp_path / "here"
    put(place, *(f"record/{number}" for number in range(5)))
    right = hashlib.sha256(b"x" * 10).hexdigest().encode()
    lines = [b"f %d record/%d" % (7 if number == 1 else 10, number) for number in range(5)]
    digests = [right + b"  record/%d" % number for number in range(5)]
    lying = Here(b"\0".join(lines) + b"\0\0" + b"\0".join(digests) + b"\0")
    with pytest.raises(TransferBroken, match="record/1"):
        collected(lying, place, into)
    assert sorted(path.name for path in into.iterdir()) == ["0", "2", "3", "4"]


def test_what_cannot_be_read_is_said_when_the_others_are_here(tmp_path: Path) -> None:
    place, into = tmp_path / "place", tmp_path / "here"
    put(place, "record/a", "record/b")
    right = hashlib.sha256(b"x" * 10).hexdigest().encode()
    with pytest.raises(CommandFailed, match=r"1 of its files cannot be read there, such as 'record/b'"):
        collected(Here(b"f 10 record/a\0f 10 record/b\0\0" + right + b"  record/a\0"), place, into)
    assert [path.name for path in into.iterdir()] == ["a"]


def test_no_room_here_is_said_with_the_place_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, into = tmp_path / "place", tmp_path / "here"
    put(place, "record/a")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=9))
    with pytest.raises(DiskFull, match=rf"no room on this machine in {into} for 10 bytes: make room there"):
        collected(Here(), place, into)


def test_what_was_refused_is_in_the_events(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    note_refused(run, "n1", ())
    assert not run.events.exists() and refused_before(run) == []
    note_refused(run, "n1", (Refusal("file", "n1", "name", 2),))
    (event,) = parse_lines(run.events.read_bytes())
    assert (event["kind"], event["node"]) == ("refused", "n1")
    assert event["refused"] == [{"what": "file", "source": "n1", "reason": "name", "count": 2}]
    note_refused(run, "n2", (Refusal("file", "n2", "size", 1),))
    assert [each.source for each in refused_before(run)] == ["n1", "n2"]
