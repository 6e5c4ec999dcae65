"""A run on real nodes, watched while it goes on: their records come here, and a lost node is told."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from node_agent.agent import metrics
from node_agent.telemetry.segments import read_records
from orchestrator.errors import EXIT_OK
from orchestrator.live.door import NotLive, Watching, node_metrics
from tests.ssh.drill import PATIENCE_S, TEST_S, Drill, _events
from tests.ssh.lab import Lab
from tests.ssh.sshd import FIRST_ID

pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]


def while_it_runs(drill: Drill, act: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await act()

    drill.reach("measure")
    asyncio.run(bounded())


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.05)


def segments(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("segments/*.jsonl"))}


def states(drill: Drill, node: str) -> list[str]:
    return [
        event["status"] for event in _events(drill.run) if event["kind"] == "node" and event["node"] == node
    ]


def test_a_run_on_real_nodes_is_seen_live(lab: Lab) -> None:
    """n05 loses its connection for a while, and comes back."""
    camera, screen, lost = lab.node("n01"), lab.node("n03"), lab.node("n05")
    with Drill(lab, "live", duration="45s", lease="12s") as drill:
        here = drill.run.temporary / "live" / camera.name

        async def act() -> None:
            samples = await node_metrics(drill.run, camera.name, 5.0)
            costs = {sample.labels[0] for sample in samples if sample.name == metrics.LINK_COST}
            assert costs and costs <= {node.name for node in lab.nodes}
            assert not here.exists(), "nobody watches yet"
            async with Watching(drill.run):
                await follow(3)
                show(drill.on_node(screen) / "frames" / "screen-0", b"a picture")
                shown = drill.run.temporary / "live" / screen.name / "frames" / "screen-0" / "latest.jpg"
                await until(lambda: shown.exists() and shown.read_bytes() == b"a picture")
                lost.pull_cable()
                await until(lambda: states(drill, lost.name) == ["unreachable"])
                with pytest.raises(NotLive):
                    await node_metrics(drill.run, lost.name, 5.0)
                await follow(1)
                lost.plug_cable()
                await until(lambda: states(drill, lost.name) == ["unreachable", "ok"])

        async def grown(size: int) -> None:
            await until(lambda: sum(map(len, segments(here).values())) > size)

        async def follow(times: int) -> None:
            for _ in range(times):
                await grown(sum(map(len, segments(here).values())))
                on_node = segments(drill.on_node(camera))
                assert all(on_node[name].startswith(data) for name, data in segments(here).items())

        try:
            while_it_runs(drill, act)
        finally:
            lost.plug_cable()
        code = drill.finish()
    assert code == EXIT_OK, drill.verdict
    assert not drill.run.temporary.exists()
    clocks = [event for event in _events(drill.run) if event["kind"] == "clock"]
    assert {event["node"] for event in clocks} == {node.name for node in lab.nodes}
    links = [links_of(drill, node.name) for node in lab.nodes]
    assert all(links), "routing's view is recorded where nobody knows the true links"


def show(folder: Path, picture: bytes) -> None:
    """As a sink would that shows pictures."""
    for each in (folder.parent, folder):
        each.mkdir(0o700)
        os.chown(each, FIRST_ID, FIRST_ID)
    file = folder / "latest.jpg"
    file.write_bytes(picture)
    os.chown(file, FIRST_ID, FIRST_ID)


def links_of(drill: Drill, node: str) -> list[dict[str, Any]]:
    return [record for record in read_records(drill.run.segments(node)) if record["kind"] == "neighbours"]
