"""The driver on CORE's host, against a recorded double of CORE: CORE's traps, and what is left behind."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.backends.core.driver_client import PROTOCOL
from orchestrator.backends.core.session import pixel_paths
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.spec.topology import Topology
from tests.driven_core import DrivenCore, described
from tests.unit.specs import topology

DOUBLE = Path(__file__).parents[3] / "recorded_core"
CORE = {"host": "emulator.lab", "user": "me"}
Json = dict[str, Any]


class Driven(DrivenCore):
    """Of a double, which has everything in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = {
            **os.environ,
            "RECORDED_CORE": str(folder),
            "PYTHONPATH": str(DOUBLE),
            "PATH": f"{DOUBLE / 'bin'}:{os.environ['PATH']}",
        }
        super().__init__(sys.executable, "localhost:50051", environment)

    def sessions(self) -> dict[str, Json]:
        files = self.folder.glob("pycore.*/session.json")
        return {file.parent.name: json.loads(file.read_text()) for file in files}


Make = Callable[..., Driven]


@pytest.fixture
def core(tmp_path: Path) -> Iterator[Make]:
    """A driver of a CORE with the traits given."""
    driven: list[Driven] = []

    def make(**traits: Any) -> Driven:
        (tmp_path / "traits.json").write_text(json.dumps(traits))
        driven.append(Driven(tmp_path))
        return driven[-1]

    yield make
    for one in driven:
        one.close()


def read(radio: Json | None = None, **core: Any) -> Topology:
    changes = {} if radio is None else {"radio": radio}
    return Topology.model_validate(topology(nodes=3, core=CORE | core, **changes))


EMANE = {"model": "80211b"}


PATIENCE_S = 0.2


def test_it_says_which_core_there_is_and_refuses_another_protocol(core: Make) -> None:
    driven = core()
    told = driven.ask("hello", protocol=PROTOCOL)
    assert told["version"] == "9.2.1"
    assert "emane_ieee80211abg" in told["emane"]
    assert "protocol" in driven.ask("hello", protocol=PROTOCOL + 1)["error"]


def test_a_session_has_its_mark_its_place_on_earth_and_its_nodes(core: Make) -> None:
    driven, session = core(), described(read(EMANE))
    created = driven.create(session)
    kept = driven.sessions()[f"pycore.{created['session']}"]
    assert (kept["state"], kept["metadata"]) == ("RUNTIME", {"rove.run": "run-1"})
    assert (kept["location"]["lat"], kept["location"]["alt"], kept["location"]["scale"]) == (0.0, 2.0, 100.0)
    assert {name: node["address"] for name, node in kept["nodes"].items()} == {
        node.name: node.address for node in session.nodes
    }
    assert all(node["services"] == ["IPForward"] for node in kept["nodes"].values())
    assert created["enter"]["n02"][:4] == [
        str(DOUBLE / "bin/vcmd"),
        "-c",
        f"{driven.folder}/pycore.{created['session']}/n02",
        "--",
    ]


@pytest.mark.parametrize("radio", [EMANE, None], ids=["emane", "wlan"])
def test_air_as_it_should_be_passes_the_preflight_and_nodes_are_back_in_their_places(
    core: Make, radio: Json | None
) -> None:
    driven, meant = core(), read(radio)
    session = described(meant)
    name = f"pycore.{driven.create(session)['session']}"
    assert driven.try_out(meant, session, PATIENCE_S) == []
    for node in session.nodes:
        assert driven.sessions()[name]["nodes"][node.name]["at"] == [node.x, node.y]
    said = (driven.folder / name / "n01.commands").read_text().splitlines()
    assert said[-2:] == ["ip route add 10.77.0.2/32 dev eth0", "ip route del 10.77.0.2/32 dev eth0"]


def test_nodes_know_each_others_hardware_addresses(core: Make) -> None:
    driven = core()
    name = f"pycore.{driven.create(described(read()))['session']}"
    assert (driven.folder / name / "n02.commands").read_text().splitlines() == [
        "neigh replace 10.77.0.1 lladdr 02:02:00:00:00:01 dev eth0",
        "neigh replace 10.77.0.3 lladdr 02:02:00:00:00:03 dev eth0",
    ]


def test_ranges_that_core_silently_does_not_enforce_are_found(core: Make) -> None:
    driven, meant = core(enforces=False), read()
    session = described(meant)
    assert "error" not in driven.create(session)  # CORE says that all is well
    (problem,) = driven.try_out(meant, session, PATIENCE_S)
    assert "out of range: CORE does not enforce the range" in problem


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"lat": 47.57917}, "out of range: EMANE's path loss is not the topology's"),
        ({"scale": 150.0}, "receive -107.04 dBm instead of -100.00 dBm"),
        ({"alt": 1.0}, "do not hear each other, and are in range"),
        ({"alt": 3.0}, "out of range: EMANE's path loss is not the topology's"),
        ({"scale": 102.0}, "receive -100.34 dBm instead of -100.00 dBm"),
    ],
)
def test_another_place_on_earth_is_another_radio_and_is_found(core: Make, wrong: Json, problem: str) -> None:
    driven, meant = core(), read(EMANE)
    session = described(meant)
    driven.create(
        msgspec.structs.replace(session, location=msgspec.structs.replace(session.location, **wrong))
    )
    assert any(problem in found for found in driven.try_out(meant, session, PATIENCE_S))


def test_a_kernel_without_netem_is_one_clear_error_and_nothing_stays(core: Make) -> None:
    driven = core(netem=False)
    told = driven.create(described(read()))["error"]
    assert "no netem" in told
    assert "netem: false" in told
    assert driven.sessions() == {}
    assert "error" not in driven.create(described(read(netem=False)))


@pytest.mark.parametrize(
    ("traits", "radio", "words"),
    [
        ({"emane": False}, EMANE, "EMANE is not installed"),
        ({"exceptions": ["boot failed: n01"]}, None, "could not start the session: boot failed: n01"),
    ],
)
def test_what_cannot_start_says_why_and_leaves_nothing(
    core: Make, traits: Json, radio: Json | None, words: str
) -> None:
    driven = core(**traits)
    assert words in driven.create(described(read(radio)))["error"]
    assert driven.sessions() == {}


def test_a_daemon_that_is_not_there(core: Make) -> None:
    assert "failed to connect" in core(up=False).ask("hello", protocol=PROTOCOL)["error"]


def test_output_of_a_command_that_fails_is_not_lost(core: Make) -> None:
    driven = core()
    driven.create(described(read()))
    argv = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    answer = driven.ask("run", node="n01", argv=argv, timeout=5.0)
    assert (answer["status"], answer["stdout"], answer["stderr"]) == (3, "out\n", "err\n")
    assert driven.ask("run", node="n01", argv=["sleep", "9"], timeout=0.1)["status"] == 124


def test_nodes_go_their_ways_and_stay_at_the_end(core: Make) -> None:
    driven, meant = core(), read()
    session = described(meant)
    name = f"pycore.{driven.create(session)['session']}"
    still = {node.name: (Waypoint(0.0, node.x, node.y),) for node in session.nodes}
    trace = Trace({**still, "n01": (Waypoint(0.0, 10.0, 20.0), Waypoint(0.2, 30.0, 50.0))})
    assert driven.ask("move", paths=pixel_paths(trace, session.air), period=0.02)["begun_ns"] > 0
    while driven.sessions()[name]["nodes"]["n01"]["at"] != [30.0, 50.0]:
        status = driven.ask("status")
        assert (status["state"], status["failure"]) == ("RUNTIME", "")
    assert driven.sessions()[name]["nodes"]["n02"]["at"] == [session.nodes[1].x, session.nodes[1].y]


def test_a_session_that_somebody_deleted_is_noticed(core: Make) -> None:
    driven = core()
    driven.create(described(read()))
    assert driven.once("--remove", "run-1") == {"sessions": [1]}
    assert driven.ask("status")["state"] == ""
    assert "error" not in driven.ask("delete")


@pytest.mark.parametrize("how", ["stdin", "signal"])
def test_its_session_ends_with_it_and_that_of_others_stays(core: Make, how: str) -> None:
    ours, theirs = core(), core()
    theirs.create(described(read(), "run-2"))
    ours.create(described(read(), "run-1"))
    assert sorted(ours.sessions()) == ["pycore.1", "pycore.2"]
    if how == "signal":
        ours.process.send_signal(signal.SIGTERM)
        assert ours.process.wait(20) == 128 + signal.SIGTERM
    ours.close()
    assert [kept["metadata"] for kept in theirs.sessions().values()] == [{"rove.run": "run-2"}]


def test_what_a_killed_driver_left_is_found_by_its_mark_alone(core: Make) -> None:
    ours, theirs = core(), core()
    theirs.create(described(read(), "run-2"))
    ours.create(described(read(), "run-1"))
    ours.process.kill()
    ours.process.wait(20)
    assert ours.once("--find", "run-1") == {"sessions": [2]}
    assert ours.once("--remove", "run-1") == {"sessions": [2]}
    assert ours.once("--find", "run-1") == {"sessions": []}
    assert list(theirs.sessions()) == ["pycore.1"]


def crash_daemon(driven: Driven) -> None:
    """And restart it: it knows nothing of its sessions, which live on."""
    for file in driven.folder.glob("pycore.*/session.json"):
        file.unlink()


def alive(pids: list[int]) -> list[int]:
    def runs(pid: int) -> bool:
        try:
            return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:  # it was reaped, too
            return False

    return [pid for pid in pids if runs(pid)]


def of_session(driven: Driven, number: int) -> list[int]:
    pids: list[int] = driven.sessions()[f"pycore.{number}"]["pids"]
    return pids


def test_what_a_crashed_daemon_forgot_is_found_and_removed_and_that_of_others_stays(core: Make) -> None:
    ours, theirs = core(processes=True), core(processes=True)
    theirs.create(described(read(EMANE), "run-1 other"))
    ours.create(described(read(EMANE), "run-1 ours"))
    foreign, own = of_session(ours, 1), of_session(ours, 2)
    crash_daemon(ours)
    assert ours.once("--find", "run-1 ours") == {"sessions": []}
    left = ours.forgotten("find", "run-1 ours")
    assert sorted(left) == sorted(
        [
            *(f"vnoded {pid}" for pid in own[::2]),
            *(f"emane {pid}" for pid in own[1::2]),
            f"directory {ours.folder}/pycore.2",
        ]
    )
    assert ours.forgotten("remove", "run-1 ours") == []
    assert not (ours.folder / "pycore.2").exists()
    assert not ours.ledger("run-1 ours").exists()
    assert ours.forgotten("remove", "run-1 ours") == []
    assert alive(foreign) == foreign
    assert (ours.folder / "pycore.1").exists()
    assert theirs.forgotten("remove", "run-1 other") == []
    again = core(processes=True)
    assert "error" not in again.create(described(read(EMANE), "run-2"))


def test_a_directory_that_a_forgotten_session_left_is_one_clear_error(core: Make) -> None:
    ours = core(processes=True)
    ours.create(described(read()))
    crash_daemon(ours)
    told = core().create(described(read(), "run-2"))["error"]
    assert "File exists" in told and "rove down" in told
    ours.forgotten("remove", "run-1")


def test_another_session_that_took_over_the_number_is_not_touched(core: Make) -> None:
    """Somebody cleaned up by hand, and began a session that has the same number."""
    ours = core(processes=True)
    ours.create(described(read(), "run-1"))
    own = of_session(ours, 1)
    for pid in own:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(ours.folder / "pycore.1")
    theirs = core(processes=True)
    theirs.create(described(read(), "run-2"))
    foreign = of_session(theirs, 1)
    assert ours.forgotten("find", "run-1") == []
    assert ours.forgotten("remove", "run-1") == []
    assert alive(foreign) == foreign
    assert (theirs.folder / "pycore.1").exists()


def test_a_live_session_is_noted_until_it_is_deleted(core: Make) -> None:
    ours = core(processes=True)
    ours.create(described(read()))
    assert len(ours.forgotten("find", "run-1")) == 4
    ours.ask("delete")
    assert ours.forgotten("find", "run-1") == []
