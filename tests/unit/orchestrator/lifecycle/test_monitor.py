"""What a run writes about itself while it goes on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.lifecycle import monitor as monitors
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.invocation import Invocation
from orchestrator.lifecycle.monitor import Monitor
from orchestrator.planning.sweep import cells
from orchestrator.runs.backend import Backend, ClockSeen, NodeOutcome, RadioSeen, Seen, Status
from orchestrator.runs.events import EventLog, describe
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement
from tests.unit.orchestrator.lifecycle.test_run import COMMAND, documents, experiment
from tests.unit.scripted_backend import ScriptedBackend, Stage


class Nodes:
    def __init__(self) -> None:
        self.seen_now = Seen([NodeOutcome("a", Status.OK)])
        self.t = 0.0

    def now_ns(self) -> int:
        return 77

    def seen(self) -> Seen:
        return self.seen_now


def looks(tmp_path: Path, *seen: Seen, apart: float = 1.0) -> list[dict[str, Any]]:
    """The events of so many looks, one after the other."""
    nodes, path = Nodes(), tmp_path / "events.jsonl"
    monitor = Monitor(nodes, EventLog(path), lambda: nodes.t)
    for nodes.seen_now in seen:
        monitor.look()
        nodes.t += apart
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def state(status: Status, reason: str = "") -> Seen:
    return Seen([NodeOutcome("a", status, reason), NodeOutcome("b", Status.OK)])


def test_a_node_that_is_lost_and_comes_back(tmp_path: Path) -> None:
    lost = [state(Status.UNREACHABLE, f"not heard of for {s} s: cut") for s in (1, 2, 3)]
    events = looks(tmp_path, state(Status.OK), *lost, state(Status.OK), state(Status.OK))
    assert [(e["kind"], e["node"], e["status"]) for e in events] == [
        ("node", "a", "unreachable"),
        ("node", "a", "ok"),
    ]
    assert events[0]["reason"] == "not heard of for 1 s: cut" and events[0]["t_ns"] == 77
    assert [describe(e) for e in events] == ["a unreachable: not heard of for 1 s: cut", "a is back"]


def test_another_reason_of_a_failed_node_is_told(tmp_path: Path) -> None:
    events = looks(tmp_path, *(state(Status.FAILED, why) for why in ("disk full", "disk full", "gone")))
    assert [e["reason"] for e in events] == ["disk full", "gone"]


def test_clocks_and_radio_are_told_now_and_then(tmp_path: Path) -> None:
    seen = [Seen((), {"a": ClockSeen(s, s * 1_000_000, 2_500_000)}, RadioSeen(0.01, s)) for s in range(21)]
    events = looks(tmp_path, *seen)
    clocks = [e for e in events if e["kind"] == "clock"]
    radio = [e for e in events if e["kind"] == "radio"]
    assert [(e["offset_ms"], e["uncertainty_ms"]) for e in clocks] == [(0, 2.5), (10, 2.5), (20, 2.5)]
    assert [e["p99_us"] for e in radio] == [0, 5, 10, 15, 20]
    assert describe(clocks[1]) == "clock of a: +10 ms, to within 2.5 ms"
    assert describe(radio[1]) == "radio: 1.00% of deliveries late, 99 % within 5 µs"


def test_the_same_measurement_is_told_once(tmp_path: Path) -> None:
    seen = Seen((), {"a": ClockSeen(1, 1, 1)}, RadioSeen(0.0, 1.0))
    assert len(looks(tmp_path, seen, seen, apart=100.0)) == 2


def run_with(root: Path, stage: Stage, **more: Any) -> tuple[RunDirectory, Judgement]:
    async def run() -> tuple[RunDirectory, Judgement]:
        of = experiment()
        with Invocation.create(of, cells(of), root, "r1") as invocation:
            finished = await invocation.run(1, stage, Interruption(), lambda *fact: None, COMMAND, **more)
            return finished.runs[0].directory, finished.verdict.verdict

    return asyncio.run(run())


def test_a_run_is_monitored_between_up_and_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors, "LOOK_S", 0.01)

    async def lose(backend: ScriptedBackend) -> None:
        monkeypatch.setattr(backend, "seen", lambda: state(Status.UNREACHABLE, "cut"), raising=False)
        await asyncio.sleep(0.2)
        monkeypatch.setattr(backend, "seen", lambda: state(Status.OK), raising=False)
        await asyncio.sleep(0.2)

    directory, verdict = run_with(tmp_path, Stage(converge=lose))
    _, _, events = documents(directory)
    assert [e["status"] for e in events if e["kind"] == "node"] == ["unreachable", "ok"]
    assert verdict is Judgement.VALID
    assert [e["t_ns"] for e in events if e["kind"] == "phase" and e["phase"] == "measure"] == [
        3_000_000_000,
        13_000_000_000,
    ]


def test_a_backend_that_cannot_be_seen_does_not_disturb_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "LOOK_S", 0.01)

    async def blind(backend: ScriptedBackend) -> None:
        monkeypatch.setattr(backend, "seen", None, raising=False)
        await asyncio.sleep(0.1)

    directory, verdict = run_with(tmp_path, Stage(converge=blind))
    assert verdict is Judgement.VALID
    assert [e["error"] for e in documents(directory)[2] if e["kind"] == "monitor"] == [
        "TypeError: 'NoneType' object is not callable"
    ]


def test_watchers_are_there_from_plan_to_down(tmp_path: Path) -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def watch(backend: Backend, directory: RunDirectory) -> AsyncIterator[None]:
        steps.append("opened")
        assert directory.temporary.is_dir()
        yield
        assert directory.temporary.is_dir()
        steps.append("closed")

    stage = Stage(up=_note(steps, "up"), collect=_note(steps, "collect"), down=_note(steps, "down"))
    _, verdict = run_with(tmp_path, stage, watch=watch)
    assert steps == ["opened", "up", "collect", "closed", "down"]
    assert verdict is Judgement.VALID


@pytest.mark.parametrize("moment", ["opening", "closing"])
def test_a_watcher_that_fails_does_not_fail_the_run(tmp_path: Path, moment: str) -> None:
    @asynccontextmanager
    async def watch(backend: Backend, directory: RunDirectory) -> AsyncIterator[None]:
        if moment == "opening":
            raise OSError("no sockets here")
        yield
        raise OSError("no sockets here")

    directory, verdict = run_with(tmp_path, Stage(), watch=watch)
    assert verdict is Judgement.VALID
    assert "no sockets here" in next(e["error"] for e in documents(directory)[2] if e["kind"] == "live")


def _note(steps: list[str], what: str) -> Any:
    async def note(backend: ScriptedBackend) -> None:
        steps.append(what)

    return note
