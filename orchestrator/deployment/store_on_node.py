"""Sent to a node as text and run there by its own Python: the store of layers under ~/.rove, and places.

Standard library only. A layer is unpacked under a temporary name and renamed, so it is whole or not there;
a lock keeps apart those who look for layers and those who remove them. Reads an order as one line of JSON on
its standard input, writes the answer as another.
"""

import errno
import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

KEPT_BUNDLES = 5
KEPT_S = 30 * 24 * 3600.0
ABANDONED_S = 60.0
"""An upload that nobody has added to for so long can be taken over: transfers give up earlier than that."""
BEING_DEPLOYED_S = 3600.0
STALE_S = 24 * 3600.0
CHECK_S = 240.0
_DIGEST = re.compile(rb"/store/([0-9a-f]{64})")
_CHECK = """
import compileall, importlib, sys
compileall.compile_dir(sys.argv[1], quiet=2)
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


class Damaged(Exception):
    pass


class Unusable(Exception):
    pass


def make_private(folder: Path) -> None:
    """Makes a directory that no other user of the machine can read or write. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    if folder.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it is not the user's own who logs in", str(folder))
    folder.chmod(0o700)


def begin(order: dict[str, Any]) -> dict[str, Any]:
    """Notes that the bundle is in use, makes room, and answers which of its layers have to be sent."""
    store = Path(order["rove"], "store")
    make_private(store.parent)
    for folder in (store, store / "bundles", store / "incoming"):
        folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    with locked(store):
        record = store / "bundles" / f"{order['bundle']}.json"
        known = read_record(record)
        checked = known is not None and known.get("checked") is True
        write_record(record, {"layers": order["layers"], "checked": checked})
        missing = [digest for digest in order["layers"] if not (store / digest).is_dir()]
        begun = {digest: adopt(store / "incoming", digest, order["owner"]) for digest in missing}
        prune(store, order["bundle"])
    remove_gone(store)
    disk = os.statvfs(store)
    return {"missing": begun, "checked": checked and not missing, "free": disk.f_bavail * disk.f_frsize}


def finish(order: dict[str, Any]) -> dict[str, Any]:
    """Unpacks what has arrived; imports everything as a test, which also writes bytecode for later."""
    store = Path(order["rove"], "store")
    place_layers(
        store, {d: store / "incoming" / name for d, name in order["archives"].items()}, order["owner"]
    )
    check(order)
    with locked(store):
        record = store / "bundles" / f"{order['bundle']}.json"
        write_record(record, {"layers": order["layers"], "checked": True})
    return {}


def put(order: dict[str, Any]) -> dict[str, Any]:
    """Puts files of a run into its place, from an archive that follows the order; makes further folders."""
    place = Path(order["place"])
    make_private(Path(order["rove"]))
    make_private(place)
    for folder in order["folders"]:
        (place / folder).mkdir(parents=True, exist_ok=True)
    unpack(sys.stdin.buffer, place, order["digest"], 0o600)
    return {}


def place_layers(store: Path, archives: dict[str, Path], owner: str) -> None:
    """Places all arrived layers by digest; always removes their archives."""
    temporaries = {digest: store / f".{digest}.{owner}" for digest in archives}
    try:
        for digest, temporary in temporaries.items():
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(mode=0o700)
            with archives[digest].open("rb") as packed:
                unpack(packed, temporary, digest, 0o644)
        if temporaries:
            os.sync()  # before they get their names, in case of a power cut
        for digest, temporary in temporaries.items():
            try:
                temporary.rename(store / digest)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise  # else another process placed the same content first
    finally:
        for temporary in temporaries.values():
            shutil.rmtree(temporary, ignore_errors=True)
        for archive in archives.values():
            archive.unlink(missing_ok=True)


class _Digested:
    def __init__(self, stream: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.digest.update(data)
        return data


def unpack(packed: BinaryIO, folder: Path, digest: str, mode: int) -> None:
    """Unpacks under a temporary name first. Raises Damaged if the digest is wrong."""
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            content = _Digested(stream)  # type: ignore[arg-type]
            with tarfile.open(fileobj=content, mode="r|") as archive:  # type: ignore[call-overload]
                for member in archive:
                    _extract(archive, member, folder, mode)
            while content.read(1 << 16):
                pass
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(str(error)) from error
    if content.digest.hexdigest() != digest:
        raise Damaged("its content is not what was packed")


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, mode: int) -> None:
    source = archive.extractfile(member)
    if source is None or member.name.startswith("/") or ".." in member.name.split("/"):
        raise Damaged(f"{member.name} does not belong into an archive of files")
    path = folder / member.name
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.touch(mode)
    with temporary.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    temporary.rename(path)


def check(order: dict[str, Any]) -> None:
    environment = {**os.environ, "PYTHONPATH": ":".join(order["paths"])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    argv = [sys.executable, "-P", "-c", _CHECK, order["compile"], *order["modules"]]
    try:
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_S
        )
    except subprocess.TimeoutExpired:
        raise Unusable(f"{', '.join(order['modules'])}: not imported within {CHECK_S:g} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Unusable(lines[-1] if lines else f"Python ended with status {done.returncode}")


def adopt(incoming: Path, digest: str, owner: str) -> int:
    """Takes over a partial upload of the same archive from an ended attempt; returns its size."""
    for path in sorted(incoming.glob(f"{digest}.*.part")):
        _, held, rest = path.name.split(".", 2)
        with suppress(FileNotFoundError):  # it has just arrived completely
            status = path.stat()
            if held == owner:
                return status.st_size
            if time.time() - status.st_mtime > ABANDONED_S:
                own = path.with_name(f"{digest}.{owner}.{rest}")
                path.rename(own)
                os.utime(own)
                return status.st_size
    return 0


def prune(store: Path, bundle: str) -> None:
    """Sets aside layers that no recent deployment and no running process uses."""
    now = time.time()
    records = {}
    for path in (store / "bundles").glob("*.json"):
        record = read_record(path)
        if record is not None:
            records[path.stem] = (path.stat().st_mtime, frozenset(record["layers"]))
    kept = recent({name: used for name, (used, _) in records.items()}, bundle, now)
    wanted = {digest for name in kept for digest in records[name][1]} | in_use(store)
    for name in records:
        if name not in kept:
            (store / "bundles" / f"{name}.json").unlink()
    present = [path.name for path in store.iterdir() if re.fullmatch("[0-9a-f]{64}", path.name)]
    for digest in sorted(digest for digest in present if digest not in wanted):
        (store / digest).rename(store / f".gone-{digest}-{os.getpid()}")
    for path in (*(store / "incoming").iterdir(), *(store / "bundles").glob(".*")):
        if is_stale(path, now):
            path.unlink(missing_ok=True)
    for path in store.glob(".*"):  # left by a killed unpacking
        if not path.name.startswith(".gone-") and path.is_dir() and is_stale(path, now):
            path.rename(store / f".gone-{path.name[1:65]}-{os.getpid()}")


def is_stale(path: Path, now: float) -> bool:
    """Says whether a file is old; False if it is gone, because others upload and unpack without the lock."""
    with suppress(FileNotFoundError):
        return now - path.stat().st_mtime > STALE_S
    return False


def recent(used: dict[str, float], current: str, now: float) -> list[str]:
    """Returns the bundles to keep: the last few that were used lately, and always the current one."""
    by_use = sorted((name for name in used if name != current), key=lambda name: (-used[name], name))
    few = [
        name for place, name in enumerate(by_use, 1) if place < KEPT_BUNDLES and now - used[name] <= KEPT_S
    ]
    being_deployed = [name for name in by_use if name not in few and now - used[name] <= BEING_DEPLOYED_S]
    return [*([current] if current in used else []), *few, *being_deployed]


def in_use(store: Path) -> set[str]:
    """Returns the layers that the environment or command line of a running process names."""
    mark = f"{store}/".encode()
    found: set[str] = set()
    processes = Path("/proc")
    for process in processes.iterdir() if processes.is_dir() else ():
        if process.name.isdigit():
            for file in ("environ", "cmdline"):
                with suppress(OSError):
                    text = (process / file).read_bytes()
                    if mark in text:
                        found.update(digest.decode() for digest in _DIGEST.findall(text))
    return found


def remove_gone(store: Path) -> None:
    for path in store.glob(".gone-*"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def locked(store: Path) -> Iterator[None]:
    with (store / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read_record(path: Path) -> "dict[str, Any] | None":
    try:
        record = json.loads(path.read_text())
        return record if isinstance(record["layers"], list) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(path: Path, record: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(record))
    temporary.rename(path)


ACTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "begin": begin,
    "finish": finish,
    "put": put,
}


def main() -> None:
    os.umask(0o022)
    order = json.loads(sys.stdin.buffer.readline())
    try:
        answer = ACTIONS[order["do"]](order)
    except Damaged as error:
        answer = {"damaged": str(error)}
    except Unusable as error:
        answer = {"unusable": str(error)}
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        text = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
        answer = {"full" if full else "failed": text}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
