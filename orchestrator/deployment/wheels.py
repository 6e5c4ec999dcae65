"""Downloads wheels with pip for nodes that differ from this machine: the only step that needs internet."""

import asyncio
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from orchestrator.deployment import directories
from orchestrator.deployment.bundle import bundle_for, provided, requirement
from orchestrator.deployment.contents import Installed
from orchestrator.deployment.errors import CannotDeploy
from orchestrator.deployment.facts import NodeFacts, probe
from orchestrator.deployment.needs import AGENT, PYROUTE2, Needs, everything
from orchestrator.deployment.tags import node_platforms
from orchestrator.errors import RoveError
from orchestrator.planning.parts import Part
from orchestrator.spec.inventory import Host
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.fleet import on_all
from orchestrator.ssh.host_keys import KnownHosts

PIP_S = 600.0
MINIMUM = Needs((*AGENT, PYROUTE2))
"""Packages that every node needs."""


@dataclass(frozen=True)
class Supply:
    """What a node has and lacks.

    ``unmet`` says why it cannot run anything; empty if it can run at least some.
    """

    facts: NodeFacts | None
    downloaded: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    unmet: str = ""


async def supply(hosts: Iterable[Host], known: KnownHosts) -> dict[str, Supply]:
    """Asks the nodes for their facts, and downloads what they lack into the wheel house."""
    asked = await on_all({host.name: host for host in hosts}, lambda host: _asked(host, known))
    done: dict[tuple[str, ...], Supply] = {}
    supplies = {}
    for name, facts in asked.items():
        if isinstance(facts, RoveError):
            supplies[name] = Supply(None, unmet=getattr(facts, "reason", str(facts)))
            continue
        alike = _alike(facts)
        if alike not in done:
            done[alike] = await _downloaded(facts)
        got = done[alike]
        supplies[name] = Supply(facts, got.downloaded, got.failed, await asyncio.to_thread(_unmet, facts))
    return supplies


async def _asked(host: Host, known: KnownHosts) -> NodeFacts:
    connection = await Connection.open(host, known)
    try:
        return await probe(connection)
    finally:
        await connection.close()


def _alike(facts: NodeFacts) -> tuple[str, ...]:
    """Groups nodes that take the same wheels."""
    version = ".".join(map(str, facts.version[:2]))
    return facts.implementation, version, facts.abiflags, *node_platforms(facts)


def _unmet(facts: NodeFacts) -> str:
    try:
        bundle_for(facts, MINIMUM)
    except CannotDeploy as error:
        return error.reason
    return ""


async def _downloaded(facts: NodeFacts) -> Supply:
    downloaded, failed = [], {}
    for part in lacking(facts):
        wanted = locked(part.distribution)
        try:
            downloaded.append(await download(facts, wanted, directories.wheel_house()))
        except RoveError as error:
            failed[wanted] = str(error)
    return Supply(facts, tuple(downloaded), failed)


def lacking(facts: NodeFacts) -> Iterator[Part]:
    """Returns packages that the nodes may use and that are not here; none if no published wheel can fit."""
    if facts.implementation == "cpython" and any(node_platforms(facts)):
        for part in everything().parts:
            if provided(facts, part) is None:
                yield part


def locked(distribution: str) -> str:
    """Returns the version used here, so that nodes compute with the same; else one that is allowed."""
    here = Installed.find(distribution)
    if here is None or here.name != distribution:
        return f"{distribution}{requirement(distribution)}"
    return f"{distribution}=={here.version}"


def pip_download(facts: NodeFacts, wanted: str, into: Path) -> list[str]:
    """Returns the command. It names every platform, as pip does not infer older ones from a newer one."""
    python = "".join(map(str, facts.version[:2]))
    own = f"cp{python}{'t' if 't' in facts.abiflags else ''}"
    platforms = [word for each in node_platforms(facts) for word in ("--platform", each)]
    return [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(into)),
        *("--python-version", python, "--implementation", "cp"),
        *("--abi", own, "--abi", "abi3", "--abi", "none"),
        *platforms,
        wanted,
    ]


async def download(facts: NodeFacts, wanted: str, house: Path) -> str:
    """Downloads a wheel into the wheel house, returns its name. Raises RoveError."""
    if find_spec("pip") is None:
        raise RoveError("pip is not installed here: python -m ensurepip")
    with _arriving(house) as directory:
        await _run(pip_download(facts, wanted, directory))
        return _kept(directory, house)


@contextmanager
def _arriving(house: Path) -> Iterator[Path]:
    """Makes a hidden folder in the wheel house, so that a broken download is never taken for a wheel."""
    house.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=house, prefix=".download-") as directory:
        yield Path(directory)


def _kept(directory: Path, house: Path) -> str:
    (wheel,) = directory.glob("*.whl")
    wheel.replace(house / wheel.name)
    return wheel.name


async def _run(argv: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), PIP_S)
    except BaseException as error:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if isinstance(error, TimeoutError):
            raise RoveError(f"pip was not done within {PIP_S:g} s") from error
        raise
    if process.returncode != 0:
        lines = output.decode(errors="replace").strip().splitlines()
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        raise RoveError((errors or lines or [f"pip ended with status {process.returncode}"])[-1])
