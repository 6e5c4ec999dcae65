"""A run's network on this machine: builds it from a layout, removes it by its mark, finds what is left."""

import os
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.backends.netns import control_group, executor, names, syscalls
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.executor import Descriptors
from orchestrator.backends.netns.layout import Layout, problems, steps
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.namespace_exits import NamespaceExits
from orchestrator.errors import BadInput
from orchestrator.runs import processes

JOURNAL_KIND = "network"
"""The journal's name for the intent to build a network; teardown looks for it."""

_GRACE_S = 1.0
_DRAIN_S = 1.0


@dataclass(frozen=True)
class Leftover:
    """Something of the run's that still exists. ``kind``: namespace, process,
    visitor (a foreign process inside) or group."""

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what}"


def up(layout: Layout, mark: Mark, directory: Path = names.HOST_NAMES) -> Descriptors:
    """Builds the network completely or not at all. The caller owns the radio's ends."""
    if found := problems(layout):
        raise BadInput("; ".join(found))
    with names.names_of(mark, directory) as existing:
        if existing:
            raise NetworkError(f"run {mark.run_id} has a network already: take it down first (rove down)")
    try:
        names.prepare(directory)
    except OSError as error:
        raise NetworkError(f"cannot name namespaces in {directory}: {error.strerror}") from error
    try:
        return executor.execute(steps(layout, mark), directory)
    except BaseException:
        _remove_namespaces(mark, directory, timeout=5.0)
        raise


def attach(mark: Mark, directory: Path = names.HOST_NAMES) -> Descriptors:
    """Returns the radio's ends of an existing network, for a radio that did not build it (TAP only)."""
    with names.names_of(mark, directory) as found:
        nodes = {named.node: named.descriptor for named in found if not named.node.startswith(".")}
        return executor.attach({node: number for node, number in nodes.items() if number is not None})


def down(mark: Mark, directory: Path = names.HOST_NAMES, timeout: float = 10.0) -> list[Leftover]:
    """Ends the run's processes and removes its network, by mark alone. Returns what could not be removed.

    May be repeated. It needs only the mark, not the process that brought the network up.
    """
    deadline = time.monotonic() + timeout
    groups = control_group.find(mark)
    for group in groups:
        group.kill()
    # A process that is just forking can escape one scan, but not several.
    while (alive := mark.processes()) and time.monotonic() < deadline:
        processes.end(alive, _GRACE_S)
    held = _remove_namespaces(mark, directory, deadline - time.monotonic())
    for group in groups:
        group.remove(max(0.0, deadline - time.monotonic()))
    return [*held, *leftovers(mark, directory)]


def _remove_namespaces(mark: Mark, directory: Path, timeout: float) -> list[Leftover]:
    deadline = time.monotonic() + timeout
    with ExitStack() as watching:
        with names.names_of(mark, directory) as found:
            if not found:
                return []
            exits = watching.enter_context(NamespaceExits())
            identities = {}
            for named in found:
                if named.descriptor is not None:
                    exits.expect(named.node, named.descriptor)
                    identities[named.node] = _identity(os.fstat(named.descriptor))
            for named in found:
                names.release(named.path)
        # Wait only now: until here we held the namespaces ourselves.
        while True:
            left = max(0.0, deadline - time.monotonic())
            alive = exits.wait(min(left, _DRAIN_S))
            held = _held_by_processes() if alive else frozenset()
            alive = [node for node in alive if identities[node] in held]
            if not alive or left <= _DRAIN_S:
                break
    return [Leftover("namespace", f"{node}: a process outside the run holds it open") for node in alive]


def _held_by_processes() -> frozenset[tuple[int, int]]:
    """Returns everything, including namespaces, that a process is in or has open.

    A namespace that still exists and is not among them cannot be entered again: TCP connections of ended
    programs keep it until they time out, and then it ends by itself.
    """
    held = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone, or another user's
            for link in (*process.glob("task/*/ns/net"), *process.glob("fd/*")):
                with suppress(OSError):
                    held.add(_identity(link.stat()))
    return frozenset(held)


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def leftovers(mark: Mark, directory: Path = names.HOST_NAMES) -> list[Leftover]:
    """Returns everything of the run's on this machine; changes nothing."""
    with names.names_of(mark, directory) as found:
        named = [Leftover("namespace", str(entry.path)) for entry in found]
    marked = [process.pid for process in mark.processes()]
    return [
        *named,
        *(Leftover("process", str(pid)) for pid in marked),
        *(Leftover("visitor", str(pid)) for pid in _inside(mark, directory) if pid not in marked),
        *(Leftover("group", str(group.path)) for group in control_group.find(mark)),
    ]


def _inside(mark: Mark, directory: Path) -> list[int]:
    """Returns processes in the run's namespaces, whoever started them:
    they keep one alive even without its name."""
    return syscalls.in_own_thread(lambda: _find_inside(mark, directory))


def _find_inside(mark: Mark, directory: Path) -> list[int]:
    belongs = {syscalls.OWN_NETWORK.readlink(): False}
    found = []
    for pid in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with suppress(OSError):  # gone, or another user's
            process = Path(f"/proc/{pid}")
            place = (process / "ns/net").readlink()
            if place not in belongs:
                belongs[place] = _is_in(mark, process, directory)
            if belongs[place]:
                found.append(pid)
    return found


def _is_in(mark: Mark, process: Path, directory: Path) -> bool:
    descriptor = os.open(process / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return names.mark_inside(descriptor).startswith(f"rove {mark.digest} ")
    except PermissionError:
        # A rootless run, seen from outside: we cannot enter its namespaces, but see its names.
        seen = process / "root" / directory.relative_to("/")
        return any(mark.node_of(path.name) for path in seen.iterdir())
    finally:
        os.close(descriptor)
