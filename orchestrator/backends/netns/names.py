"""Names namespaces: files with a namespace mounted on them, where `ip netns` looks for them.

A namespace is marked before it is named, so a name of ours whose namespace lacks our mark is foreign.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.backends.netns import syscalls
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.netlink import Netlink

HOST_NAMES = Path("/run/netns")
_NS_GET_NSTYPE = 0xB703


@dataclass(frozen=True)
class Named:
    """A name of the run's. ``descriptor``: the namespace, or None if a crash came before the mount."""

    node: str
    path: Path
    descriptor: int | None


def prepare(directory: Path) -> None:
    """Lets mounts in ``directory`` reach every mount namespace, as `ip netns add` does."""
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory):
        try:
            syscalls.mount("", directory, flags=syscalls.MS_SHARED | syscalls.MS_REC)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            syscalls.mount(str(directory), directory, flags=syscalls.MS_BIND | syscalls.MS_REC)
            syscalls.mount("", directory, flags=syscalls.MS_SHARED | syscalls.MS_REC)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def name_own_namespace(path: Path) -> None:
    """Gives the calling thread's namespace a name. Raises FileExistsError if the name is taken."""
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
    syscalls.mount(str(syscalls.OWN_NETWORK), path, flags=syscalls.MS_BIND)


def open_namespace(path: Path) -> int | None:
    """Returns a descriptor of the namespace at ``path``; None if there is something else or nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with suppress(OSError):
        if fcntl.ioctl(descriptor, _NS_GET_NSTYPE) == syscalls.CLONE_NEWNET:
            return descriptor
    os.close(descriptor)
    return None


def mark_inside(descriptor: int) -> str:
    """Returns the alias of the namespace's ``lo``; empty if it has no such link.

    Leaves the calling thread inside the namespace: call it in a thread of its own.
    """
    syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
    with Netlink() as netlink, suppress(OSError):
        return netlink.link_alias("lo")
    return ""


@contextmanager
def names_of(mark: Mark, directory: Path) -> Iterator[list[Named]]:
    """Returns the run's names in ``directory``, and no others; closes the descriptors at the end."""
    found: list[Named] = []
    try:
        syscalls.in_own_thread(lambda: _find(mark, directory, found))
        yield found
    finally:
        for named in found:
            if named.descriptor is not None:
                os.close(named.descriptor)


def _find(mark: Mark, directory: Path, found: list[Named]) -> None:
    if not directory.is_dir():
        return
    for path in sorted(directory.iterdir()):
        node = mark.node_of(path.name)
        if node is None:
            continue
        descriptor = open_namespace(path)
        if descriptor is None:
            if _is_unused_file(path):
                found.append(Named(node, path, None))
            continue
        kept = False
        try:
            kept = mark_inside(descriptor) == mark.alias(node)
        except OSError as error:
            raise NetworkError(f"cannot look into {path}: {error.strerror}: this needs root") from error
        finally:
            if kept:
                found.append(Named(node, path, descriptor))
            else:
                os.close(descriptor)


def _is_unused_file(path: Path) -> bool:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_size == 0


def release(path: Path) -> None:
    """Removes the name. May be repeated."""
    with suppress(FileNotFoundError):
        try:
            syscalls.unmount(path)
        except OSError as error:
            if error.errno != errno.EINVAL:  # not a mount point
                raise
        path.unlink()
