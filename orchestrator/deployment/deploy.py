"""Deploys a bundle to a node: sends only missing layers, and tests that everything can be imported."""

import asyncio
import json
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from node_agent.model.checked import Checked, Count, Refused
from orchestrator.deployment import store_on_node
from orchestrator.deployment.bundle import Bundle
from orchestrator.deployment.errors import CannotDeploy
from orchestrator.deployment.facts import NodeFacts
from orchestrator.runs.backend import Progress
from orchestrator.ssh.connection import COMMAND_S, Connection
from orchestrator.ssh.errors import DiskFull, TransferBroken

FINISH_S = 300.0
_MOST_SAID = 256 * 1024
_SCRIPT = Path(store_on_node.__file__).read_text()


class Answer(Struct, frozen=True):
    """The answer of the store on a node. The first four fields are failures; the others answer ``begin``.

    ``missing``: the layers that are not there yet, with how many bytes of each have arrived.
    """

    full: str = ""
    damaged: str = ""
    unusable: str = ""
    failed: str = ""
    missing: dict[str, Count] = {}
    checked: bool = False
    free: Count = 0


_ANSWERS: Checked[Answer] = Checked(Answer, _MOST_SAID)


@dataclass(frozen=True)
class Deployed:
    """Where Rove's code is on a node, and how to run it. ``paths``: where its Python looks for modules."""

    home: str
    rove: str
    python: str
    paths: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment; writes no bytecode, as files of root could not be removed by the user."""
        return {
            "PYTHONPATH": ":".join(self.paths),
            "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, module: str, *arguments: str) -> list[str]:
        """Returns ``python -m module``; the environment is part of the command, so that it survives sudo."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", *settings, self.python, "-m", module, *arguments]


class _Deployer:
    """Makes the deployments of one connection, one at a time: a second one finds everything in place.

    ``owner``: the owner of a partial upload continues it at once, others only when it is abandoned.
    """

    def __init__(self) -> None:
        self.owner = secrets.token_hex(4)
        self.turn = asyncio.Lock()


_deployers: WeakKeyDictionary[Connection, _Deployer] = WeakKeyDictionary()


async def deploy(
    connection: Connection, facts: NodeFacts, bundle: Bundle, progress: Progress = lambda fraction: None
) -> Deployed:
    """Deploys the bundle. Raises DiskFull, CannotDeploy, TransferBroken, Unreachable; called again, it
    continues.
    """
    deployer = _deployers.setdefault(connection, _Deployer())
    async with deployer.turn:
        return await _deploy(connection, facts, bundle, deployer.owner, progress)


async def _deploy(
    connection: Connection, facts: NodeFacts, bundle: Bundle, owner: str, progress: Progress
) -> Deployed:
    deployed = _deployed(facts, bundle)
    about = {
        "rove": facts.rove,
        "bundle": bundle.digest,
        "layers": [layer.digest for layer in bundle.layers],
        "owner": owner,
    }
    found = await ask(connection, facts.python, {"do": "begin", **about}, COMMAND_S)
    missing = found.missing
    needed = sum(
        max(layer.size - missing[layer.digest], 0) + layer.unpacked
        for layer in bundle.layers
        if layer.digest in missing
    )
    if needed > found.free:
        text = f"no room in {facts.rove}: {needed} bytes are needed, {found.free} are free"
        raise DiskFull(facts.host, text)
    if found.checked:
        return deployed
    archives: dict[str, str] = {}
    total = sum(layer.size for layer in bundle.layers)
    sent = sum(layer.size for layer in bundle.layers if layer.digest not in missing)
    for layer in bundle.layers:
        if layer.digest in missing:
            progress(sent / total)
            sent += layer.size
            archives[layer.digest] = f"{layer.digest}.{owner}.tar.gz"
            remote = f"{facts.rove}/store/incoming/{archives[layer.digest]}"
            try:
                await connection.upload(layer.archive, remote)
            except FileNotFoundError:
                text = f"{layer.archive} is gone since it was packed: start again"
                raise TransferBroken(facts.host, text) from None
    trial = {
        "archives": archives,
        "paths": deployed.paths,
        "compile": deployed.paths[0],
        "modules": bundle.modules,
    }
    try:
        await ask(connection, facts.python, {"do": "finish", **about, **trial}, FINISH_S)
    except TransferBroken:
        for layer in bundle.layers:  # one of them changed since it was packed
            layer.archive.unlink(missing_ok=True)
        raise
    return deployed


def _deployed(facts: NodeFacts, bundle: Bundle) -> Deployed:
    store = f"{facts.rove}/store"
    sites = dict.fromkeys(own.site for own in bundle.own)
    paths = (*(f"{store}/{layer.digest}" for layer in bundle.layers), *sites)
    return Deployed(facts.home, facts.rove, facts.python, paths)


async def ask(
    connection: Connection, python: str, order: Mapping[str, Any], timeout: float, content: bytes = b""
) -> Answer:
    """Sends an order to the store on the node, returns its answer.

    Raises DiskFull, TransferBroken or CannotDeploy.
    """
    given = json.dumps(order).encode() + b"\n" + content
    done = await connection.run([python, "-P", "-c", _SCRIPT], timeout=timeout, input=given)
    host = connection.host.name
    try:
        answer = _ANSWERS.decode(done.stdout)
    except Refused:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise CannotDeploy(
            host, lines[-1] if lines else f"{shlex.quote(python)}: status {done.status}"
        ) from None
    if answer.full:
        raise DiskFull(host, f"no room: {answer.full}")
    if answer.damaged:
        raise TransferBroken(host, f"what arrived is damaged ({answer.damaged}): start again")
    if answer.unusable:
        raise CannotDeploy(host, f"what was deployed does not run there: {answer.unusable}")
    if answer.failed:
        raise CannotDeploy(host, answer.failed)
    return answer
