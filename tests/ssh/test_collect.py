"""Records that stayed on nodes: fetched later, verified, only then removed; and what broke off goes on."""

import asyncio
import hashlib
import json
import os
import signal
import time
from pathlib import Path

import pytest

from orchestrator.backends.remote.collection import collect, has_place, remove_place
from orchestrator.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK
from orchestrator.lifecycle.teardown import State, state_of
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import SshError
from tests.ssh.conftest import Make
from tests.ssh.drill import TEST_S, Drill, contents, wait_until
from tests.ssh.lab import Lab
from tests.ssh.patience import until
from tests.ssh.relay import Relay, over_a_wire
from tests.ssh.sshd import FIRST_ID, HOME, SshServer
from tests.unit.rove_process import phases

PLACE = f"{HOME}/.rove/runs/r1/n01"
LARGE = bytes(range(256)) * 12_000
FILES = {
    "record/agent.log": b"",
    "record/segments/b0001-s000001.jsonl": b'{"a": 1}\n' * 500,
    "record/segments/b0001-s000002.jsonl": LARGE,
    "record/frames/of two words.jpg": b"\xff\xd8" * 100,
    **{f"record/frames/{number:04}.jpg": b"%d" % number * 300 for number in range(700)},
    "ended.json": b'{"reason": "end of run", "t_ns": 1, "in_order": true}',
    "agent.json": b"a secret",
}


def put(server: SshServer) -> Path:
    place = server.home / ".rove" / "runs" / "r1" / "n01"
    for name, content in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    for path in (server.home / ".rove").rglob("*"):
        os.chown(path, FIRST_ID, FIRST_ID)
    os.chown(server.home / ".rove", FIRST_ID, FIRST_ID)
    return place


def wanted() -> dict[str, str]:
    return {
        name.removeprefix("record/"): hashlib.sha256(content).hexdigest()
        for name, content in FILES.items()
        if name != "agent.json"
    }


def test_a_record_comes_whole_and_only_once(make: Make, tmp_path: Path) -> None:
    server, into = make(), tmp_path / "here"
    place = put(server)

    async def act(connection: Connection, relay: Relay) -> None:
        told: list[tuple[int, int]] = []
        found = await collect(connection, PLACE, into, lambda *done: told.append(done))
        assert contents(into) == wanted()
        assert (found.files, found.fetched) == (len(wanted()), found.bytes)
        assert told[0] == (0, found.bytes) and told[-1] == (found.bytes, found.bytes)
        assert place.is_dir(), "who collects does not remove"
        relay.forget()
        (into / "agent.log").unlink()
        (into / "frames" / "0007.jpg").write_bytes(b"tampered with")
        again = await collect(connection, PLACE, into)
        assert contents(into) == wanted() and again.fetched == 300
        assert relay.received < 400_000, "what is here and equal is not fetched again"
        assert await has_place(connection, PLACE)
        await remove_place(connection, PLACE)
        assert not await has_place(connection, PLACE)
        assert not (server.home / ".rove" / "runs").exists() and (server.home / ".rove").is_dir()

    over_a_wire(server, tmp_path, act)


def test_a_cut_does_not_begin_anew(make: Make, tmp_path: Path) -> None:
    server, into = make(), tmp_path / "here"
    put(server)

    async def act(connection: Connection, relay: Relay) -> None:
        collecting = asyncio.create_task(collect(connection, PLACE, into))
        await until(lambda: relay.received > 1_800_000)
        relay.cut()
        found = await collecting
        assert contents(into) == wanted()
        assert found.fetched < found.bytes, "some of it was here when it went on"

    over_a_wire(server, tmp_path, act)


def test_where_there_is_nothing_nothing_is_collected(make: Make, tmp_path: Path) -> None:
    async def act(connection: Connection, relay: Relay) -> None:
        assert (await collect(connection, PLACE, tmp_path / "here")).files == 0
        assert not await has_place(connection, PLACE)

    over_a_wire(make(), tmp_path, act)


def test_what_cannot_be_read_is_said_and_stays(make: Make, tmp_path: Path) -> None:
    server = make()
    place = put(server)
    (place / "record" / "agent.log").chmod(0)
    (place / "record" / "agent.log").write_bytes(b"x")

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(SshError, match=r"agent\.log"):
            await collect(connection, PLACE, tmp_path / "here")

    over_a_wire(server, tmp_path, act)
    assert place.is_dir()


@pytest.mark.timeout(TEST_S)
def test_a_run_that_was_torn_down_at_once_is_collected_later(lab: Lab) -> None:
    with Drill(lab, "hasty", duration="60s", lease="20s") as drill:
        drill.reach("measure")
        refused = lab.rove("collect", "hasty", "--no-analyze")
        assert refused.returncode == EXIT_BAD_INPUT and "still going on" in refused.stderr
        drill.process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # two at the same moment would count as one
        drill.process.send_signal(signal.SIGINT)
        assert drill.finish() == EXIT_INTERRUPTED
    assert not any(node.processes() for node in lab.nodes)
    kept = {node.name: contents(drill.on_node(node)) for node in lab.nodes}
    assert all(kept.values()) and not drill.run.nodes.exists()
    status = lab.rove("status", "hasty")
    assert "rove collect hasty" in status.stdout
    down = lab.rove("down", "hasty")
    assert down.returncode == 0 and "n01, n02, n03, n04, n05, n06" in down.stdout
    assert {node.name: contents(drill.on_node(node)) for node in lab.nodes} == kept
    with lab.without_power(lab.node("n06")):
        some = lab.rove("collect", "hasty", "--no-analyze", "--json")
    outcomes = {entry["node"]: entry["outcome"] for entry in json.loads(some.stdout)["nodes"]}
    assert outcomes == {f"n0{number}": "collected" for number in range(1, 6)} | {"n06": "unreachable"}
    assert some.returncode == 1
    rest = lab.rove("collect", "hasty", "--no-analyze", "--json")
    document = json.loads(rest.stdout)
    assert [entry["node"] for entry in document["nodes"]] == ["n06"]
    assert rest.returncode == EXIT_INVALID and document["verdict"] == "invalid"
    for node in lab.nodes:
        assert contents(drill.here(node)).items() >= kept[node.name].items()
        assert drill.completeness(node).complete
    manifest = json.loads(drill.run.manifest.read_text())
    assert any(name.startswith("nodes/n06/segments/") for name in manifest["files"])
    again = lab.rove("collect", "hasty", "--no-analyze")
    assert again.returncode == EXIT_INVALID and "Nothing to collect" in again.stdout


@pytest.mark.slow
@pytest.mark.timeout(TEST_S)
def test_an_interrupted_collection_of_a_sweep_is_judged_as_far_as_it_came(lab: Lab) -> None:
    away = lab.node("n06")
    file = lab.experiment(lab.folder / "swept.yaml", name="swept", quorum=0.5, sweep={"seed": [1, 2]})
    sweep = RunDirectory(lab.runs / "swept" / "swept")
    with lab.start("run", file, "--run-id", sweep.id, "--no-analyze") as running:
        for number in (1, 2):
            member = RunDirectory(sweep.path.with_name(f"{sweep.id}.{number:02}"))
            wait_until(lambda member=member: "measure" in phases(member), "it runs")  # type: ignore[misc]
            record = away.home / ".rove" / "runs" / member.id / away.name / "record"
            away.write(record / "large", os.urandom(1 << 21))
            with away.slow_cable("2mbit"):
                wait_until(lambda member=member: "collect" in phases(member), "it collects")  # type: ignore[misc]
                with away.hanging():
                    away.cut()
                    wait_until(lambda member=member: "down" in phases(member), "it ends")  # type: ignore[misc]
        _, told = running.communicate(timeout=60)
    assert "rove collect swept fetches it" in told
    first, second = sweep.members()
    assert verdicts(sweep, first, second) == ["invalid"] * 3
    assert "still on" in lab.rove("status", sweep.id).stdout
    with away.slow_cable("2mbit"), lab.start("collect", sweep.id, "--no-analyze") as collecting:
        wait_until(lambda: state_of(second) is State.ALIVE, "it has come to the second run")
        busy = lab.rove("collect", second.id, "--no-analyze")
        assert busy.returncode == EXIT_BAD_INPUT and "by another rove" in busy.stderr
        collecting.send_signal(signal.SIGINT)
        collecting.communicate(timeout=60)
    assert verdicts(sweep, first, second) == ["invalid", "valid", "invalid"]
    assert lab.rove("collect", second.id, "--no-analyze").returncode == EXIT_OK
    assert verdicts(sweep, first, second) == ["invalid", "valid", "valid"]
    whole = lab.rove("collect", sweep.id, "--no-analyze")
    assert whole.returncode == EXIT_OK and "Nothing to collect" in whole.stdout
    assert verdicts(sweep, first, second) == ["valid"] * 3


def verdicts(*runs: RunDirectory) -> list[str]:
    return [json.loads(run.verdict.read_text())["verdict"] for run in runs]


def test_two_runs_of_a_sweep_do_not_share_the_nodes(lab: Lab) -> None:
    file = lab.experiment(lab.folder / "both.yaml", sweep={"seed": [1, 2]})
    refused = lab.rove("run", file, "--no-analyze", "--jobs", "2")
    assert refused.returncode == EXIT_BAD_INPUT and "the same nodes" in refused.stderr
