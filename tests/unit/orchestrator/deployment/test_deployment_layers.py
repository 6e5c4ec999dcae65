"""Layers are the same wherever they are packed, and the store on a node keeps them whole and bounded."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.deployment import facts_on_node, layers
from orchestrator.deployment import store_on_node as node
from orchestrator.deployment.contents import Entry, Sources, Wheel
from orchestrator.deployment.facts import NodeFacts, no_python, read_facts
from orchestrator.deployment.layers import layer_of, write_archive
from tests.unit.deployments import wheel

DAY = 24 * 3600


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    begin(tmp_path, "first", [])
    return tmp_path / "rove" / "store"


def begin(folder: Path, bundle: str, digests: list[str], owner: str = "me") -> dict[str, Any]:
    return node.begin({"rove": str(folder / "rove"), "bundle": bundle, "layers": digests, "owner": owner})


def packed(files: dict[str, bytes]) -> tuple[str, io.BytesIO]:
    archive = io.BytesIO()
    digest, _ = write_archive(archive, (Entry(*each) for each in files.items()))
    archive.seek(0)
    return digest, archive


def read_wheel(path: Path) -> Wheel:
    found = Wheel.read(path)
    assert found is not None
    return found


def test_the_same_content_is_the_same_layer(tmp_path: Path) -> None:
    files = {"b/__init__.py": b"x = 1\n", "b/data.bin": bytes(5000)}
    one = read_wheel(wheel(tmp_path / "one", "b", "1.0", "py3-none-any", files))
    other = read_wheel(wheel(tmp_path / "two", "b", "1.0", "py3-none-any", dict(reversed(files.items()))))
    os.utime(other.path, (1, 1))
    first = layer_of(one)
    content = first.archive.read_bytes()
    first.archive.unlink()
    assert layer_of(other) == first and first.archive.read_bytes() == content
    changed = wheel(tmp_path / "two", "b", "1.0", "py3-none-any", files | {"b/data.bin": b"1"})
    assert layer_of(read_wheel(changed)).digest != first.digest


def test_what_is_packed_is_what_runs(tmp_path: Path) -> None:
    files = {
        "b/__init__.py": b"",
        "b/fast.so": b"code",
        "b/fast.pyx": b"",
        "b-1.0.data/purelib/c.py": b"",
        "b-1.0.data/scripts/tool": b"",
    }
    layer = layer_of(read_wheel(wheel(tmp_path, "b", "1.0", "py3-none-any", files)))
    with tarfile.open(layer.archive) as archive:
        names = archive.getnames()
    assert names == ["b-1.0.dist-info/METADATA", "b/__init__.py", "b/fast.so", "c.py"]
    with tarfile.open(layer_of(Sources()).archive) as archive:
        names = archive.getnames()
    assert "node_agent/agent/process.py" in names and not [name for name in names if not name.endswith(".py")]


def test_the_cache_forgets_what_was_not_used_for_long(tmp_path: Path) -> None:
    old = layer_of(read_wheel(wheel(tmp_path, "old", "1.0", "py3-none-any")))
    long_ago = time.time() - 31 * DAY
    for path in old.archive.parent.iterdir():
        os.utime(path, (long_ago, long_ago))
    new = layer_of(read_wheel(wheel(tmp_path, "new", "1.0", "py3-none-any")))
    assert {path.name for path in layers._folder().glob("*.gz")} == {new.archive.name}


def place(store: Path, digest: str, archive: bytes, owner: str = "me") -> None:
    file = store / "incoming" / f"{digest}.{owner}.tar.gz"
    file.write_bytes(archive)
    try:
        node.place_layers(store, {digest: file}, owner)
    finally:
        assert not file.exists()


def test_a_layer_is_there_whole_or_not_at_all(store: Path) -> None:
    digest, archive = packed({"a/b.py": b"1", "c.py": b"2"})
    torn, flipped = archive.getvalue()[:-20], bytearray(archive.getvalue())
    flipped[40] ^= 0xFF
    outside = packed({"../b.py": b"3"})
    cases = [(digest, each) for each in (torn, bytes(flipped), packed({"a/b.py": b"3"})[1].getvalue())]
    for name, wrong in [*cases, (outside[0], outside[1].getvalue())]:
        with pytest.raises(node.Damaged):
            place(store, name, wrong)
    assert not [path for path in store.iterdir() if "py" in path.name or digest in path.name]
    place(store, digest, archive.getvalue())
    place(store, digest, archive.getvalue(), "somebody else")  # was a little slower
    assert (store / digest / "a" / "b.py").read_bytes() == b"1"
    assert [path.name for path in store.iterdir() if path.name.startswith(f".{digest}")] == []


def test_only_what_is_missing_is_asked_for(tmp_path: Path, store: Path) -> None:
    digest, archive = packed({"a.py": b""})
    assert begin(tmp_path, "b", [digest])["missing"] == {digest: 0}
    place(store, digest, archive.getvalue())
    found = begin(tmp_path, "b", [digest])
    assert (found["missing"], found["checked"]) == ({}, False) and found["free"] > 0
    order = {"archives": {}, "paths": [str(store / digest)], "compile": str(store / digest), "owner": "me"}
    about = {"rove": str(store.parent), "bundle": "b", "layers": [digest]}
    with pytest.raises(node.Unusable, match="No module named 'nothing'"):
        node.finish({**order, **about, "modules": ["a", "nothing"]})
    node.finish({**order, **about, "modules": ["a"]})
    assert begin(tmp_path, "b", [digest])["checked"]
    assert list((store / digest / "__pycache__").glob("a.*.pyc"))


def test_an_upload_is_taken_up_by_its_owner_at_once_and_by_others_when_it_is_abandoned(
    tmp_path: Path, store: Path
) -> None:
    digest = 64 * "a"
    part = store / "incoming" / f"{digest}.me.tar.gz.0123456789abcdef.part"
    part.write_bytes(bytes(10))
    assert begin(tmp_path, "b", [digest])["missing"] == {digest: 10}
    assert begin(tmp_path, "b", [digest], "you")["missing"] == {digest: 0} and part.exists()
    os.utime(part, (1, time.time() - 2 * node.ABANDONED_S))
    assert begin(tmp_path, "b", [digest], "you")["missing"] == {digest: 10}
    assert [path.name for path in part.parent.iterdir()] == [part.name.replace(".me.", ".you.")]


def test_files_that_others_take_away_meanwhile_are_no_obstacle(tmp_path: Path, store: Path) -> None:
    """They are seen in a directory, and are gone when looked at: so is a link to nothing."""
    digest = "a" * 64
    for name in (f"incoming/{digest}.you.tar.gz.part", f"incoming/{digest}.you.tar.gz"):
        (store / name).symlink_to("nothing")
    assert begin(tmp_path, "bundle", [digest])["missing"] == {digest: 0}


def test_what_a_full_disk_left_of_a_note_does_not_stay(tmp_path: Path, store: Path) -> None:
    left = store / "bundles" / ".bundle.json.123"
    left.touch()
    begin(tmp_path, "bundle", [])
    assert left.exists()
    os.utime(left, (1, 1))
    begin(tmp_path, "bundle", [])
    assert not left.exists()


def test_bundles_are_kept_by_their_last_use() -> None:
    now = 100.0 * DAY
    used = {f"b{i}": now - i * DAY for i in range(8)} | {"old": now - 40 * DAY}
    assert node.recent(used, "b7", now) == ["b7", "b0", "b1", "b2", "b3"]
    assert node.recent({"old": used["old"], "b0": now}, "b0", now) == ["b0"]
    at_once = {f"b{i}": now - i for i in range(8)}
    assert len(node.recent(at_once, "b0", now)) == 8  # others may be deploying these right now
    assert node.recent({"mine": 5.0, "future": now}, "mine", 6.0) == ["mine", "future"]


@pytest.fixture
def keeper(store: Path) -> Iterator[str]:
    """The layer that a running process uses."""
    digest = 64 * "c"
    environment = {**os.environ, "PYTHONPATH": f"{store / digest}"}
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment)
    yield digest
    process.kill()
    process.communicate()


def test_layers_nobody_uses_are_removed_but_never_those_of_a_running_process(
    tmp_path: Path, store: Path, keeper: str
) -> None:
    old, lately = 64 * "a", 64 * "b"
    begin(tmp_path, "old", [old, keeper])
    for digest in (old, lately, keeper):
        (store / digest).mkdir()
        (store / digest / "file").touch()
    os.utime(store / "bundles" / "old.json", (1, time.time() - 31 * DAY))
    (store / "incoming" / "left.part").touch()
    os.utime(store / "incoming" / "left.part", (1, 1))
    begin(tmp_path, "lately", [lately])
    left = {path.name for path in store.iterdir() if len(path.name) == 64}
    assert left == {lately, keeper}
    assert not list(store.glob(".gone-*")) and not list((store / "incoming").iterdir())
    assert not (store / "bundles" / "old.json").exists()


def test_a_place_is_for_the_users_eyes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest, archive = packed({"order.json": b"{}", "files/0/film.mp4": b"film"})
    place = tmp_path / "rove" / "runs" / "r" / "n01"
    order = {"do": "put", "rove": str(tmp_path / "rove"), "place": str(place), "folders": ["files/1"]}
    done = subprocess.run(
        [sys.executable, "-P", "-c", Path(node.__file__).read_text()],
        input=json.dumps(order | {"digest": digest}).encode() + b"\n" + archive.getvalue(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == {}
    assert (place / "files" / "0" / "film.mp4").read_bytes() == b"film" and (place / "files" / "1").is_dir()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "rove", place)} == {0o700}
    assert (place / "order.json").stat().st_mode & 0o777 == 0o600


def test_an_archive_that_is_no_archive_is_damaged(store: Path) -> None:
    for content in (b"", b"no gzip", gzip.compress(b"no tar")):
        with pytest.raises(node.Damaged):
            node.unpack(io.BytesIO(content), store, 64 * "0", 0o644)


def test_this_machine_tells_what_it_is() -> None:
    text = Path(facts_on_node.__file__).read_text()
    done = subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, check=True)
    facts = read_facts("here", done.stdout)
    assert isinstance(facts, NodeFacts) and facts.version == tuple(sys.version_info[:3])
    assert facts.python == sys.executable and facts.libc == "glibc" and facts.libc_version >= (2, 17)
    assert facts.packages["msgspec"] and Path(facts.sites["msgspec"], "msgspec").is_dir()
    assert facts.rove == f"{facts.home}/.rove"


def test_what_was_found_of_python_is_said() -> None:
    assert "it has only older ones (python3 is 3.9)" in no_python(["python3 is 3.9"])
    assert "none that could be found" in no_python([])
