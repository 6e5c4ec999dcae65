"""What `rove serve TOPOLOGY` knows of real nodes, against real sshd."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.live import fleet as fleets
from orchestrator.live.fleet import Fleet
from orchestrator.spec.hosts import RealNode
from tests.ssh.conftest import Make
from tests.ssh.sshd import SshServer, known_hosts

Nodes = dict[str, dict[str, Any]]
Act = Callable[[Callable[[Callable[[Nodes], bool]], Awaitable[Nodes]]], Awaitable[None]]


def real(server: SshServer) -> RealNode:
    return RealNode(server.host, "lo", "10.77.0.1", ("camera",))


def watched(servers: list[SshServer], known: Path, act: Act) -> None:
    async def use() -> None:
        fleet = Fleet("lab", {server.name: real(server) for server in servers}, known)

        async def until(fits: Callable[[Nodes], bool]) -> Nodes:
            while True:
                found = {node["node"]: node for node in (await fleet.document())["nodes"]}
                if fits(found):
                    return found
                await asyncio.sleep(0.1)

        try:
            async with asyncio.timeout(50):
                await act(until)
        finally:
            await fleet.close()

    asyncio.run(use())


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "PERIOD_S", 1.0)


def _has_our_clock(node: dict[str, Any]) -> bool:
    clock = node.get("clock")
    return clock is not None and abs(clock["offset_ms"]) <= clock["uncertainty_ms"] + 1


def test_each_node_tells_how_it_is(six: list[SshServer], tmp_path: Path) -> None:
    known = known_hosts(tmp_path / "known", *six[:5]).path

    async def act(until: Callable[[Callable[[Nodes], bool]], Awaitable[Nodes]]) -> None:
        first = await until(lambda nodes: True)
        assert {node["state"] for node in first.values()} == {"asking"}
        await until(lambda nodes: all(node["state"] != "asking" for node in nodes.values()))
        # Somebody may set this machine's clock during a measurement; the next one is right again.
        nodes = await until(lambda nodes: sum(map(_has_our_clock, nodes.values())) == 5)
        stranger = nodes.pop(six[5].name)
        assert (stranger["state"], stranger["enrolled"]) == ("not enrolled", False)
        assert "rove enroll" in stranger["why"]
        for node in nodes.values():
            assert (node["state"], node["enrolled"], node["reachable"]) == ("ok", True, True)
            assert node["roles"] == ["camera"]
            assert node["cores"] >= 1 and node["load"] is not None
            assert 0 < node["disk"]["free_bytes"] <= node["disk"]["bytes"]
            assert node["python"].startswith("3.")
            assert node["radio"]["there"] and not node["radio"]["wireless"]

    watched(six, known, act)


def test_a_node_that_goes_and_comes_back_is_seen(make: Make, tmp_path: Path) -> None:
    stays, goes = make("n01"), make("n02")
    known = known_hosts(tmp_path / "known", stays, goes).path

    async def act(until: Callable[[Callable[[Nodes], bool]], Awaitable[Nodes]]) -> None:
        await until(lambda nodes: all(node["state"] == "ok" for node in nodes.values()))
        await asyncio.to_thread(goes.stop)
        nodes = await until(lambda nodes: nodes["n02"]["state"] == "unreachable")
        assert nodes["n01"]["state"] == "ok"
        assert nodes["n02"]["reachable"] is False and nodes["n02"]["why"]
        await asyncio.to_thread(goes.start)
        await until(lambda nodes: nodes["n02"]["state"] == "ok")

    watched([stays, goes], known, act)


def test_another_key_is_a_state(make: Make, tmp_path: Path) -> None:
    changed = make("n01")
    known = known_hosts(tmp_path / "known", changed).path
    changed.renew_host_key()
    changed.restart()

    async def act(until: Callable[[Callable[[Nodes], bool]], Awaitable[Nodes]]) -> None:
        nodes = await until(lambda nodes: nodes["n01"]["state"] != "asking")
        assert nodes["n01"]["state"] == "other key"

    watched([changed], known, act)


@pytest.mark.parametrize(
    "said",
    [b"", b"hello\n", b"{}\n", b'{"python": 1}\n', b"[" * 10_000, b'{"python":"' + b"x" * 20_000 + b'"}'],
)
def test_an_answer_that_is_none_is_that_nodes_failure(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    server = make("n01")
    known = known_hosts(tmp_path / "known", server).path
    monkeypatch.setattr(fleets, "_SCRIPT", f"import sys; sys.stdout.buffer.write({said!r})")

    async def act(until: Callable[[Callable[[Nodes], bool]], Awaitable[Nodes]]) -> None:
        nodes = await until(lambda nodes: nodes["n01"]["state"] != "asking")
        assert (nodes["n01"]["state"], nodes["n01"]["why"]) == ("failed", "its answer cannot be used")

    watched([server], known, act)
