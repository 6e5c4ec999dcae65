"""The backend core over a real SSH server, as an unprivileged user, to a recorded double of CORE.

The double has no network: a whole run with agents takes the real one (tests/core).
"""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from node_agent.model.host_load import FILE as HOST_LOAD
from node_agent.model.host_load import read_sample
from orchestrator.backends.core.driver_client import CoreDriver, CoreError, left_of
from orchestrator.backends.core.infrastructure import CoreInfrastructure
from orchestrator.backends.core.marks import Mark
from orchestrator.backends.core.session import session_of
from orchestrator.backends.core.session_leftovers import find_sessions, remove_sessions, sessions_left
from orchestrator.backends.remote.site import Site
from orchestrator.lifecycle.teardown import tear_down
from orchestrator.mobility.generate import generate_trace
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.core import CORE_HOST
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.host_keys import known_hosts_file
from tests.ssh.conftest import Make
from tests.ssh.patience import until
from tests.ssh.sshd import HOME, SshServer, known_hosts
from tests.unit.specs import experiment, planned, topology

DOUBLE = Path(__file__).parents[1] / "recorded_core"
RUN = "20260101-000000-abcd"


class CoreHost:
    """A server with the double on it: ``traits`` say how its CORE is."""

    def __init__(self, server: SshServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.python = f"{HOME}/python"
        shutil.copytree(DOUBLE, server.home / "double", ignore=shutil.ignore_patterns("__pycache__"))
        (server.home / "core").mkdir()
        (server.home / "core").chmod(0o777)
        wrapper = server.home / "python"
        wrapper.write_text(
            "#!/bin/sh\n"
            f"export RECORDED_CORE={HOME}/core PYTHONPATH={HOME}/double PATH={HOME}/double/bin:$PATH\n"
            'exec /usr/bin/env python3 "$@"\n'
        )
        wrapper.chmod(0o755)

    def has(self, **traits: Any) -> None:
        (self.server.home / "core/traits.json").write_text(json.dumps(traits))

    def sessions(self) -> list[dict[str, Any]]:
        found = sorted((self.server.home / "core").glob("pycore.*/session.json"))
        return [json.loads(file.read_text()) for file in found]

    def experiment(self, **core: Any) -> Experiment:
        host = self.server.host
        access = {"host": host.address, "port": host.port, "user": host.user, "key": host.key}
        section = {**access, "python": self.python, **core}
        return experiment(backend="core", topology=topology(nodes=8, core=section))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is packed once need not be packed for every test."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def host(make: Make, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> CoreHost:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    server = make(CORE_HOST, sudo=True)
    path = known_hosts_file("field")
    path.parent.mkdir(parents=True)
    known_hosts(path, server)
    return CoreHost(server, tmp_path)


def during(
    host: CoreHost, meant: Experiment, act: Callable[[CoreInfrastructure], Awaitable[None]]
) -> RunDirectory:
    """A run's infrastructure, closed in the end; the run's directory."""
    directory = RunDirectory(host.folder / "runs" / RUN)
    directory.path.mkdir(parents=True)
    directory.spec.write_text(to_yaml(meant.resolved()))

    async def whole() -> None:
        with Journal.create(directory.journal) as journal:
            infrastructure = CoreInfrastructure(planned(meant), RUN, directory.path, journal)
            try:
                await act(infrastructure)
            finally:
                await infrastructure.close()
                await infrastructure.close()

    asyncio.run(whole())
    return directory


def test_every_node_is_a_place_for_a_supervisor_and_nothing_is_left(host: CoreHost) -> None:
    facts: dict[str, Any] = {}

    async def act(infrastructure: CoreInfrastructure) -> None:
        sites = await infrastructure.open(lambda fraction: None)
        assert list(sites) == [f"n{number:02}" for number in range(1, 9)]
        second = sites["n02"]
        assert isinstance(second, Site)
        assert (second.address, second.interface) == ("10.77.0.2", "eth0")
        assert second.enter[:4] == (f"{HOME}/double/bin/vcmd", "-c", f"{HOME}/core/pycore.1/n02", "--")
        assert "setpriv" in second.enter[4]  # not as root, which everybody is in CORE's nodes
        assert len({id(site.connection) for site in sites.values() if isinstance(site, Site)}) == 2
        done = await second.connection.run(second.deployed.command("node_agent.supervisor", "--help"))
        assert done.status == 0
        await infrastructure.begin()
        await infrastructure.move()
        await asyncio.sleep(0.5)
        infrastructure.check()
        (kept,) = host.sessions()
        run, token = kept["metadata"]["rove.run"].split()
        assert run == RUN and len(token) == 16
        await infrastructure.close()
        facts.update(infrastructure.facts()["core"])
        assert infrastructure.doubts() == []

    directory = during(host, host.experiment(), act)
    assert host.sessions() == []
    assert find_sessions(RUN, directory.path) == []
    # For the manifest:
    assert (facts["version"], facts["location"]["lat"]) == ("9.2.1", 0.0)
    assert facts["air"]["config"]["range"] == "300"
    assert [trial["observed"]["heard"] for trial in facts["preflight"]] == [True, False]
    assert facts["motion"]["failure"] == ""


def test_ranges_that_are_not_enforced_end_the_run_before_it_begins(host: CoreHost) -> None:
    host.has(enforces=False)

    async def act(infrastructure: CoreInfrastructure) -> None:
        with pytest.raises(CoreError, match="CORE does not enforce the range"):
            await infrastructure.open(lambda fraction: None)

    during(host, host.experiment(), act)
    assert host.sessions() == []


@pytest.mark.parametrize(
    ("core", "traits", "words"),
    [
        ({"python": "/nowhere/python"}, {}, "does not know CORE"),
        ({"python": "/usr/bin/python3"}, {}, "does not know CORE"),
        ({}, {"up": False}, "failed to connect"),
        ({}, {"netem": False}, "netem: false"),
    ],
)
def test_a_host_that_is_not_ready_is_one_clear_error(
    host: CoreHost, core: dict[str, Any], traits: dict[str, Any], words: str
) -> None:
    host.has(**traits)

    async def act(infrastructure: CoreInfrastructure) -> None:
        with pytest.raises(CoreError) as raised:
            await infrastructure.open(lambda fraction: None)
        assert words in str(raised.value)
        host.has()  # so that the end can be proved

    during(host, host.experiment(**core), act)
    assert host.sessions() == []


def test_a_session_that_vanishes_breaks_the_run(host: CoreHost) -> None:
    async def act(infrastructure: CoreInfrastructure) -> None:
        await infrastructure.open(lambda fraction: None)
        shutil.rmtree(host.server.home / "core/pycore.1")
        await infrastructure.begin()
        with pytest.raises(CoreError, match="session is gone"):
            while True:
                infrastructure.check()
                await asyncio.sleep(0.05)

    during(host, host.experiment(), act)


def test_a_lost_connection_ends_the_session(host: CoreHost) -> None:
    """As if the orchestrator had died."""
    meant = host.experiment()
    core = meant.topology.core
    assert core is not None
    mark = Mark(RUN, "0123456789abcdef")
    session = session_of(meant.topology, mark.text, generate_trace(meant.topology, 1, 1.0))

    async def whole() -> None:
        known = known_hosts(host.folder / "known", host.server)
        connection = await Connection.open(core.machine(), known)
        driver = await CoreDriver.start(connection, core, host.folder / "core.log")
        await driver.hello()
        await driver.create(session, mark.ledger)
        left = await left_of(connection, core, mark)
        assert left == ["CORE session 1", f"directory {HOME}/core/pycore.1"]
        await connection.close()
        with pytest.raises(CoreError, match="lost"):
            await driver.status()
        await driver.close()
        await until(lambda: not host.sessions())

    asyncio.run(whole())


def test_what_a_killed_run_left_is_removed_by_its_mark(host: CoreHost) -> None:
    meant = host.experiment()
    core = meant.topology.core
    assert core is not None
    directory = RunDirectory(host.folder / "runs" / RUN)
    directory.path.mkdir(parents=True)
    directory.spec.write_text(to_yaml(meant.resolved()))
    for number, run in ((1, RUN), (2, "another")):
        place = host.server.home / f"core/pycore.{number}"
        place.mkdir()
        place.chmod(0o777)
        (place / "session.json").write_text(json.dumps({"state": "RUNTIME", "metadata": {"rove.run": run}}))
    with Journal.create(directory.journal) as journal:
        journal.intend("core-session", host="me@emulator.lab")
        assert find_sessions(RUN, directory.path) == [f"CORE session 1 on {core.machine()}"]
        remove_sessions(RUN, directory.path, journal)
        assert find_sessions(RUN, directory.path) == []
    assert [kept["metadata"]["rove.run"] for kept in host.sessions()] == ["another"]


def test_a_host_that_cannot_be_asked_is_told_of(host: CoreHost) -> None:
    meant = host.experiment()
    directory = RunDirectory(host.folder / "runs" / RUN)
    directory.path.mkdir(parents=True)
    directory.spec.write_text(to_yaml(meant.resolved()))
    host.server.stop()
    with Journal.create(directory.journal) as journal:
        journal.intend("core-session", host="me@emulator.lab")
        remove_sessions(RUN, directory.path, journal)
        (told,) = find_sessions(RUN, directory.path)
    assert "cannot be asked" in told


def test_an_answer_that_nobody_waited_for_is_not_taken_for_another(host: CoreHost) -> None:
    core = host.experiment().topology.core
    assert core is not None

    async def use() -> None:
        connection = await Connection.open(core.machine(), known_hosts(host.folder / "known", host.server))
        driver = await CoreDriver.start(connection, core, host.folder / "log")
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await driver.hello()
            with pytest.raises(CoreError, match="there is no session"):
                await driver.status()
        finally:
            await driver.close()
            await connection.close()

    asyncio.run(use())


def test_what_a_restarted_daemon_forgot_is_removed_and_others_stay(host: CoreHost) -> None:
    """core-daemon crashes in the middle of a run: what it started lives on, and it does not know of it."""
    host.has(processes=True)
    directory = RunDirectory(host.folder / "runs" / RUN)
    directory.path.mkdir(parents=True)
    meant = host.experiment()
    directory.spec.write_text(to_yaml(meant.resolved()))
    home = host.server.home / "core"
    foreign = home / "pycore.1"
    foreign.mkdir()
    foreign.chmod(0o777)
    (foreign / "session.json").write_text(json.dumps({"state": "RUNTIME", "metadata": {"rove.run": RUN}}))

    async def act() -> None:
        with Journal.create(directory.journal) as journal:
            infrastructure = CoreInfrastructure(planned(meant), RUN, directory.path, journal)
            await infrastructure.open(lambda fraction: None)
            (home / "pycore.2/session.json").unlink()
            # As if the orchestrator had been killed: nothing is closed, but its connections end.
            await asyncio.gather(*(one.close() for one in infrastructure._connections))

    asyncio.run(act())
    assert sessions_left(directory.path) == [f"2 on {host.experiment().topology.core.machine()}"]  # type: ignore[union-attr]
    left = find_sessions(RUN, directory.path)
    assert sum(what.startswith("vnoded ") for what in left) == 8
    assert any(f"directory {HOME}/core/pycore.2" in what for what in left)
    removal = tear_down(directory)
    assert removal.left == []
    assert not (home / "pycore.2").exists() and foreign.exists()
    assert sessions_left(directory.path) == []
    assert find_sessions(RUN, directory.path) == []


def test_a_run_removes_what_its_daemon_forgot_and_the_next_one_begins(host: CoreHost) -> None:
    host.has(processes=True)

    async def act(infrastructure: CoreInfrastructure) -> None:
        await infrastructure.open(lambda fraction: None)
        (host.server.home / "core/pycore.1/session.json").unlink()
        await infrastructure.begin()
        with pytest.raises(CoreError, match="core-daemon was restarted"):
            while True:
                infrastructure.check()
                await asyncio.sleep(0.05)

    directory = during(host, host.experiment(), act)
    assert not list((host.server.home / "core").glob("pycore.*"))
    assert find_sessions(RUN, directory.path) == []
    shutil.rmtree(directory.path)

    async def again(infrastructure: CoreInfrastructure) -> None:
        await infrastructure.open(lambda fraction: None)

    during(host, host.experiment(), again)


def is_driver(pid: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return any(word.endswith(b"/driver.py") for word in words[1:]) and b"python" in words[0]


def test_a_killed_driver_is_not_a_lost_connection(host: CoreHost) -> None:
    async def act(infrastructure: CoreInfrastructure) -> None:
        await infrastructure.open(lambda fraction: None)
        await infrastructure.begin()
        (driver,) = (pid for pid in host.server.processes() if is_driver(pid))
        os.kill(driver, signal.SIGKILL)
        with pytest.raises(CoreError, match="driver was killed by"):
            while True:
                infrastructure.check()
                await asyncio.sleep(0.05)

    during(host, host.experiment(), act)
    assert host.sessions() == []


def test_the_load_of_the_host_is_measured_while_the_run_lasts(host: CoreHost) -> None:
    async def act(infrastructure: CoreInfrastructure) -> None:
        await infrastructure.open(lambda fraction: None)
        await infrastructure.begin()
        file = host.folder / "runs" / RUN / HOST_LOAD
        await until(lambda: file.exists() and len(file.read_bytes().splitlines()) >= 2)
        assert read_sample(file.read_bytes().splitlines()[1]).seconds > 0.5

    during(host, host.experiment(), act)
