"""The driver against the CORE that is installed here: the questions that its recorded double was asked, too.

Each test's session carries a mark of its own; other sessions are left alone.
"""

import math
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from orchestrator.backends.core.air import EMANE_MODEL
from orchestrator.backends.core.driver_client import PROTOCOL
from orchestrator.backends.core.session import pixel_paths
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.spec.topology import Topology
from tests.core.installed import DAEMON, PYTHON
from tests.driven_core import DrivenCore, described
from tests.unit.specs import topology

CORE = {"host": "localhost", "user": "nobody"}
EMANE = {"model": "80211b"}
PATIENCE_S = 10.0


@pytest.fixture
def core() -> Iterator[DrivenCore]:
    driven = DrivenCore(PYTHON, DAEMON, os.environ)
    yield driven
    driven.close()


@pytest.fixture
def emane(core: DrivenCore) -> DrivenCore:
    if EMANE_MODEL not in core.ask("hello", protocol=PROTOCOL)["emane"]:
        pytest.skip("needs EMANE in CORE")
    return core


@pytest.fixture
def run() -> str:
    return f"test-{secrets.token_hex(4)}"


def read(radio: dict[str, Any] | None = None, **core: Any) -> Topology:
    changes = {} if radio is None else {"radio": radio}
    return Topology.model_validate(topology(nodes=3, core=CORE | core, **changes))


def entered(created: dict[str, Any], node: str, *argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*created["enter"][node], *argv], capture_output=True, text=True, timeout=20)


def test_it_can_be_spoken_to(core: DrivenCore) -> None:
    assert int(core.ask("hello", protocol=PROTOCOL)["version"].partition(".")[0]) >= 9


def test_nodes_can_be_entered_with_the_users_rights_and_streams(core: DrivenCore, run: str) -> None:
    created = core.create(described(read(netem=False), run))
    assert entered(created, "n01", "id", "-u").stdout.strip() == str(os.geteuid())
    done = entered(created, "n02", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    addresses = entered(created, "n02", "ip", "-o", "-4", "addr", "show", "dev", "eth0").stdout
    assert "10.77.0.2/32" in addresses
    routes = entered(created, "n02", "ip", "route", "show", "default").stdout
    assert routes == ""
    known = entered(created, "n02", "ip", "neigh", "show", "nud", "permanent").stdout
    assert sorted(line.split()[0] for line in known.splitlines()) == ["10.77.0.1", "10.77.0.3"]
    forwards = entered(created, "n02", "cat", "/proc/sys/net/ipv4/conf/eth0/forwarding").stdout
    assert forwards == "1\n"


def test_a_process_that_lives_by_its_input_ends_with_whoever_started_it(core: DrivenCore, run: str) -> None:
    created = core.create(described(read(netem=False), run))
    with subprocess.Popen(
        [*created["enter"]["n01"], "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"word\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"word\n"
        process.kill()
    deadline = time.monotonic() + PATIENCE_S
    while "cat" in entered(created, "n01", "ps", "-A", "-o", "comm").stdout.split():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_wlan_keeps_its_range_or_is_found_out(core: DrivenCore, run: str) -> None:
    meant = read(netem=False)
    session = described(meant, run)
    assert "error" not in core.create(session)
    found = core.try_out(meant, session, PATIENCE_S)
    assert all("does not enforce the range" in problem for problem in found)


def test_a_kernel_has_netem_or_is_found_out(core: DrivenCore, run: str) -> None:
    told = core.create(described(read(), run)).get("error", "")
    assert told == "" or "netem: false" in told
    if told:
        assert core.once("--find", run) == {"sessions": []}


def test_emane_receives_what_the_formula_says(emane: DrivenCore, run: str) -> None:
    meant = read(EMANE)
    session = described(meant, run)
    emane.create(session)
    assert emane.try_out(meant, session, PATIENCE_S) == []


@pytest.mark.parametrize("wrong", [{"lat": 47.57917}, {"alt": 3.0}, {"scale": 102.0}])
def test_another_place_on_earth_is_found_out(emane: DrivenCore, run: str, wrong: dict[str, float]) -> None:
    meant = read(EMANE)
    session = described(meant, run)
    location = msgspec.structs.replace(session.location, **wrong)
    emane.create(msgspec.structs.replace(session, location=location))
    assert len(emane.try_out(meant, session, 3.0)) >= 1


def test_nodes_move_in_time(core: DrivenCore, run: str) -> None:
    meant = read(netem=False)
    session = described(meant, run)
    core.create(session)
    paths: dict[str, tuple[Waypoint, ...]] = {
        node.name: (Waypoint(0.0, node.x, node.y),) for node in session.nodes
    }
    circle = [(t / 10, 100 + 50 * math.cos(t), 100 + 50 * math.sin(t)) for t in range(11)]
    paths["n01"] = tuple(Waypoint(*point) for point in circle)
    core.ask("move", paths=pixel_paths(Trace(paths), session.air), period=0.05)
    time.sleep(1.5)
    status = core.ask("status")
    assert (status["state"], status["failure"]) == ("RUNTIME", "")
    assert status["rounds"] >= 5


def test_what_a_killed_driver_left_is_removed_by_its_mark(core: DrivenCore, run: str) -> None:
    number = core.create(described(read(netem=False), run))["session"]
    core.process.kill()
    core.process.wait(PATIENCE_S)
    assert core.once("--find", run) == {"sessions": [number]}
    assert core.once("--remove", f"{run}-another") == {"sessions": []}
    assert core.once("--remove", run) == {"sessions": [number]}
    assert core.once("--find", run) == {"sessions": []}


def test_what_a_session_has_on_its_host_is_found_without_the_daemon(core: DrivenCore, run: str) -> None:
    created = core.create(described(read(netem=False), run))
    left = core.forgotten("find", run)
    assert f"directory {created['directory']}" in left
    assert sum(what.startswith("vnoded ") for what in left) == 3
    assert any(what.startswith("interface b.") for what in left)
    core.ask("delete")
    deadline = time.monotonic() + PATIENCE_S
    while core.forgotten("find", run):
        assert time.monotonic() < deadline
