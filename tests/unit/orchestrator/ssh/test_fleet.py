"""Work on many nodes at once: one node's failure, foreseen or not, is that node's outcome."""

import asyncio

import pytest

from orchestrator.errors import RoveError
from orchestrator.ssh.errors import NodeFailed, Unreachable
from orchestrator.ssh.fleet import on_all

NODES = {name: name for name in ("n1", "n2", "n3", "n4", "n5")}


def test_whatever_one_node_causes_is_its_own_failure() -> None:
    async def act(node: str) -> str:
        match node:
            case "n1":
                raise Unreachable(node, "off")
            case "n2":
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd")
            case "n3":
                raise ValueError("invalid literal for int(): 'new\nline\x1b[2J'")
            case "n4":
                raise RecursionError("deep")
        await asyncio.sleep(0)
        return "done"

    found = asyncio.run(on_all(NODES, act))
    assert found.pop("n5") == "done"
    assert all(isinstance(error, RoveError) for error in found.values())
    assert isinstance(found["n1"], Unreachable)
    failure = found["n3"]
    assert isinstance(failure, NodeFailed) and isinstance(failure.__cause__, ValueError)
    assert str(failure) == r"n3: ValueError: invalid literal for int(): 'new\nline\x1b[2J'"


def test_who_gives_up_is_not_held_up() -> None:
    begun = []

    async def act(node: str) -> None:
        begun.append(node)
        await asyncio.sleep(60)

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await on_all(NODES, act, at_once=2)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert begun == ["n1", "n2"]
