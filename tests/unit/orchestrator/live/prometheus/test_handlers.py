"""What the server answers to Prometheus about runs that go on, and about others."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from node_agent.telemetry.metrics import Sample
from orchestrator.live.door import NotLive, open_door
from orchestrator.live.prometheus import handlers
from orchestrator.live.prometheus.beside import Beside
from orchestrator.live.prometheus.handlers import Offer
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import known_run
from tests.unit.orchestrator.live.watched_backend import WatchedBackend

pytestmark = pytest.mark.unit

BOOT = Sample("rove_agent_boot", (), 3.0)
QUEUE = Sample("rove_queue_length", ("detect/0", "input"), 7.0, "query")
Alive = list[RunDirectory]
Act = Callable[[Offer, RunDirectory, WatchedBackend, Alive], Awaitable[None]]


def offered(tmp_path: Path, act: Act, linger_s: float = 0.0) -> None:
    """``act`` gets an offer of one run, whose nodes can be asked, and the list of runs that go on."""
    directory = RunDirectory(known_run(tmp_path).in_real_time().write())
    directory.temporary.mkdir()
    alive = [directory]

    async def use() -> None:
        backend = WatchedBackend("n1", "n2", "n3", "n9")
        async with (
            asyncio.timeout(30),
            open_door(backend, directory),
            Offer(lambda: alive, linger_s) as offer,
        ):
            await act(offer, directory, backend, alive)

    with Journal.take_over(directory.journal, 1.0) or pytest.fail():
        asyncio.run(use())


def test_a_node_is_asked_at_that_moment(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        backend.samples["n2"] = (BOOT, QUEUE)
        found = await offer.node(run, "n2")
        assert found is not None
        lines = found.data.decode().splitlines()
        assert "rove_agent_boot 3.0" in lines
        assert 'rove_queue_length{app="query",queue="input",replica="detect/0"} 7.0' in lines
        assert "rove_samples_refused 0.0" in lines
        assert backend.asked == ["n2"]

    offered(tmp_path, act)


def test_samples_that_a_node_made_up_are_counted_and_not_shown(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        backend.samples["n2"] = (BOOT, BOOT, Sample("up", (), 1.0), Sample("rove_node_up", ("n1", "x"), 0.0))
        found = await offer.node(run, "n2", "application/openmetrics-text")
        assert found is not None
        text = found.data.decode()
        assert "rove_samples_refused 3.0" in text and "\nup" not in text and text.endswith("# EOF\n")

    offered(tmp_path, act)


def test_a_node_that_does_not_answer_is_an_error_of_that_node(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        backend.lost.add("n2")
        with pytest.raises(NotLive, match="n2"):
            await offer.node(run, "n2")
        assert await offer.node(run, "n1") is not None

    offered(tmp_path, act)


def test_only_nodes_of_runs_that_go_on_can_be_asked(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        assert await offer.node(run, "../n1") is None
        assert await offer.node(RunDirectory(run.path.parent / "other"), "n1") is None
        assert await offer.run(run) is not None
        alive.clear()
        assert await offer.node(run, "n1") is None
        assert await offer.run(run) is None
        assert backend.asked == []

    offered(tmp_path, act)


def test_the_orchestrator_tells_what_the_files_say(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        one, everything = await offer.run(run), await offer.orchestrator()
        assert one is not None
        assert 'rove_run_info{clock="real"} 1.0' in one.data.decode()
        text = everything.data.decode()
        assert "rove_runs_watched 1.0" in text
        assert f'k="2",run="{run.id}",seed="1"' in text
        alive.clear()
        assert "rove_runs_watched 0.0" in (await offer.orchestrator()).data.decode()

    offered(tmp_path, act)


def test_targets_come_and_go_with_their_runs(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        data, content_type = await offer.discovery("rove.example:8470")
        groups = json.loads(data)
        assert content_type == "application/json"
        assert {group["targets"][0] for group in groups} == {"rove.example:8470"}
        assert [group["labels"].get("node") for group in groups] == [None, "n1", "n2", "n3", "n9"]
        alive.clear()
        assert json.loads((await offer.discovery("x")).data) == []

    offered(tmp_path, act)


def test_the_verdict_of_a_run_that_has_ended_is_seen_for_a_while(tmp_path: Path) -> None:
    async def act(
        offer: Offer, run: RunDirectory, backend: WatchedBackend, alive: list[RunDirectory]
    ) -> None:
        assert len(json.loads((await offer.discovery("x")).data)) == 5
        with run.events.open("a") as events:
            events.write('{"kind": "verdict", "verdict": "valid", "reasons": []}\n')
        alive.clear()
        (group,) = json.loads((await offer.discovery("x")).data)
        assert group["labels"]["__metrics_path__"] == f"/runs/{run.id}/metrics"
        found = await offer.run(run)
        assert found is not None and 'rove_run_verdict{verdict="valid"} 1.0' in found.data.decode()
        assert await offer.node(run, "n1") is None
        everything = (await offer.orchestrator()).data.decode()
        assert "rove_runs_watched 0.0" in everything and "rove_run_verdict{" in everything
        alive.append(run)  # it could not be read for a moment
        assert len(await offer.targets()) == 1 and (await offer.targets())[0].nodes

    offered(tmp_path, act, linger_s=60.0)


def test_of_many_runs_that_have_ended_the_newest_are_offered(tmp_path: Path) -> None:
    runs = [RunDirectory(known_run(tmp_path / str(n)).write()) for n in range(3)]
    for number, run in enumerate(runs):
        runs[number] = RunDirectory(run.path.rename(run.path.parent / f"r{number}"))

    async def use(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(handlers, "MOST_RUNS", 2)
        alive: list[RunDirectory] = []
        async with asyncio.timeout(20), Offer(lambda: alive, 60.0) as offer:
            for run in runs:
                alive[:] = [run]
                await offer.targets()
            assert [target.run for target in await offer.targets()] == ["r2", "r1"]
            alive.clear()
            assert [target.run for target in await offer.targets()] == ["r1", "r2"]

    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(use(monkeypatch))


class Here:
    base = "http://127.0.0.1:8470/"
    token: str | None = None


class Runs:
    def __init__(self, runs: list[RunDirectory]) -> None:
        self._runs = runs

    def going_on(self) -> list[RunDirectory]:
        return self._runs


def test_the_file_of_targets_is_kept_while_the_server_runs(tmp_path: Path) -> None:
    run = RunDirectory(known_run(tmp_path / "runs").in_real_time().write())
    file = tmp_path / "targets.json"

    async def use() -> None:
        beside = Beside(tmp_path / "runs", print, sd=file)
        offer = beside.door(Runs([run]))
        async with asyncio.timeout(20), beside.running(Here()):
            assert len(json.loads(file.read_text())) == 5
        await offer.close()

    asyncio.run(use())
    assert json.loads(file.read_text()) == []


def test_without_prometheus_the_lines_for_another_one_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []

    async def use(token: str | None) -> None:
        where = Here()
        where.token = token
        async with asyncio.timeout(20), Beside(tmp_path, said.append, prometheus=True).running(where):
            pass

    asyncio.run(use(None))
    assert "Prometheus is not installed here" in said[0]
    assert "url: http://127.0.0.1:8470/sd" in said[-1]
    assert f"- {tmp_path}/.prometheus/rules.yml" in said[-1]
    assert "credentials_file" not in said[-1]
    assert (tmp_path / ".prometheus" / "rules.yml").read_text().startswith("groups:")
    asyncio.run(use("secret-secret-secret"))
    assert said[-1].count("credentials_file: /path/to") == 2 and "secret" not in said[-1]
