"""Real nodes before a run: whether each is reachable and enrolled, its clock, load, battery, radio and disk.

One connection a node is kept while somebody watches. A node's failure is that node's state, nobody else's.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from node_agent.model.checked import Checked, Moment, Refused
from orchestrator.clocks.offsets import Exchange, estimate
from orchestrator.errors import RoveError
from orchestrator.live import fleet_on_node
from orchestrator.spec.hosts import RealNode
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import HostKeyChanged, HostKeyUnknown, LoginRefused, SshError, Unreachable
from orchestrator.ssh.fleet import on_all
from orchestrator.ssh.host_keys import KnownHosts

PERIOD_S = 10.0
IDLE_S = 60.0
CONNECT_S = 8.0
ASK_S = 8.0
CLOCK_S = 3.0
CLOCK_BURST = 3
AT_ONCE = 8
_MOST_BYTES = 16 * 1024
_SCRIPT = Path(fleet_on_node.__file__).read_text()

_Text = Annotated[str, Meta(max_length=100)]
_Size = Annotated[int, Meta(ge=0, le=2**62)]
_Number = Annotated[float, Meta(ge=-1e9, le=1e9)]


class _Memory(Struct, frozen=True):
    bytes: _Size
    free_bytes: _Size


class _Battery(Struct, frozen=True):
    percent: Annotated[float, Meta(ge=0, le=1000)]
    charging: bool


class _Radio(Struct, frozen=True):
    interface: _Text
    there: bool
    state: _Text | None = None
    mac: _Text | None = None
    wireless: bool = False
    signal_dbm: _Number | None = None


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node says of itself, each part bounded."""

    python: _Text
    cores: Annotated[int, Meta(ge=1, le=10_000)]
    disk: _Memory
    radio: _Radio
    now_ns: Moment
    load: _Number | None = None
    memory: _Memory | None = None
    battery: _Battery | None = None
    celsius: _Number | None = None
    uptime_s: _Number | None = None


_ANSWERS: Checked[_Answer] = Checked(_Answer, _MOST_BYTES)


class Fleet:
    """Must be closed. ``document`` may be asked as often as one likes: nodes are asked every ``PERIOD_S``."""

    def __init__(self, name: str, nodes: Mapping[str, RealNode], known_hosts: Path) -> None:
        self._name = name
        self._nodes = dict(nodes)
        self._known_hosts = known_hosts
        self._known = KnownHosts(known_hosts)
        self._connections: dict[str, Connection] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._asked = float("-inf")
        self._wanted = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def document(self) -> dict[str, Any]:
        """Returns at once with what is known; the first time, what is not known yet is ``asking``."""
        self._wanted = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_asking(), name="fleet")
        return {
            "topology": self._name,
            "asked_ago_s": None if self._asked == float("-inf") else round(time.monotonic() - self._asked, 1),
            "nodes": [self._state(name) for name in self._nodes],
        }

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._disconnect()

    def _state(self, name: str) -> dict[str, Any]:
        node = self._nodes[name]
        own = {"node": name, "address": str(node.host), "manet": node.address, "roles": list(node.roles)}
        return own | self._states.get(name, {"state": "asking", "why": ""})

    async def _keep_asking(self) -> None:
        """Asks all nodes again and again while somebody wants to know; then lets go of them."""
        while time.monotonic() - self._wanted < IDLE_S:
            begun = time.monotonic()
            self._known = KnownHosts(self._known_hosts)  # somebody may enrol nodes meanwhile
            await on_all(self._nodes, self._update, AT_ONCE)
            self._asked = time.monotonic()
            await asyncio.sleep(max(1.0, PERIOD_S - (time.monotonic() - begun)))
        await self._disconnect()

    async def _update(self, node: RealNode) -> None:
        name = node.host.name
        enrolled = self._known.key_of(name) is not None
        try:
            async with asyncio.timeout(CONNECT_S + ASK_S + CLOCK_BURST * CLOCK_S):
                facts = await self._ask(node)
            state: dict[str, Any] = {"state": "ok", "why": "", "reachable": True} | facts
        except RoveError as error:
            state = _failure(error)
        except (TimeoutError, OSError):
            state = {"state": "unreachable", "why": "it does not answer in time", "reachable": False}
        if state["state"] != "ok":
            await self._forget(name)
        self._states[name] = {"enrolled": enrolled, "seen": time.time()} | state

    async def _ask(self, node: RealNode) -> dict[str, Any]:
        connection = self._connections.get(node.host.name)
        if connection is None or not connection.alive:
            await self._forget(node.host.name)
            connection = await Connection.open(node.host, self._known, CONNECT_S)
            self._connections[node.host.name] = connection
        sent_ns = time.time_ns()
        answer = await _answer(connection, node.interface)
        slow = Exchange(sent_ns, answer.now_ns, time.time_ns())  # with the start of a Python
        facts: dict[str, Any] = to_builtins(answer)
        del facts["now_ns"]
        offset = estimate([slow, *[each async for each in _clock(connection)]])
        clock = {"offset_ms": offset.offset_ns / 1e6, "uncertainty_ms": offset.uncertainty_ns / 1e6}
        return facts | {"clock": clock}

    async def _forget(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            await connection.close()

    async def _disconnect(self) -> None:
        for name in list(self._connections):
            await self._forget(name)


async def _answer(connection: Connection, interface: str) -> _Answer:
    done = await connection.run(["python3", "-I", "-c", _SCRIPT, interface], timeout=ASK_S)
    if done.status != 0:
        complaint = done.stderr.decode(errors="replace").strip().splitlines()
        text = complaint[-1] if complaint else f"status {done.status}"
        raise SshError(connection.host.name, f"its Python cannot tell how it is: {text}")
    try:
        return _ANSWERS.decode(done.stdout.strip())
    except Refused as error:
        raise SshError(connection.host.name, "its answer cannot be used") from error


async def _clock(connection: Connection) -> AsyncIterator[Exchange]:
    """Asks a program that starts quickly for the time. Not every node has one that tells nanoseconds."""
    for _ in range(CLOCK_BURST):
        sent_ns = time.time_ns()
        done = await connection.run(["date", "+%s%N"], timeout=CLOCK_S)
        text = done.stdout.strip()
        if done.status != 0 or not text.isdigit() or not 15 < len(text) < 20:
            return
        yield Exchange(sent_ns, int(text), time.time_ns())


def _failure(error: RoveError) -> dict[str, Any]:
    why = error.reason if isinstance(error, SshError) else str(error)
    match error:
        case HostKeyUnknown():
            return {"state": "not enrolled", "why": why, "reachable": None}
        case HostKeyChanged():
            return {"state": "other key", "why": why, "reachable": True}
        case LoginRefused():
            return {"state": "login refused", "why": why, "reachable": True}
        case Unreachable():
            return {"state": "unreachable", "why": why, "reachable": False}
    return {"state": "failed", "why": why, "reachable": True}
