"""A supervisor with real programs and a real agent, from the first line to the last process."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from node_agent.agent.control import AskStatus, OpenSources, Request, Start, State, Stop
from node_agent.agent.control_lines import encode
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.commands import AskClock, End, Hello, KillAgent, Renew, StartAgent
from node_agent.supervisor.order import Program
from node_agent.telemetry.segments import inspect, read_records
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from tests.unit.supervising import PATIENCE_S, PYTHON, attached, new_place, processes_of, supervise

SERVICE = """
import signal, sys, time
def ended(*_):
    open("service.ended", "w").write(str(time.time_ns()))
    sys.exit(0)
signal.signal(signal.SIGTERM, ended)
print("the service runs", flush=True)
open("service.runs", "w").close()
while True:
    signal.pause()
"""
SETUP = """
import sys, time
print('{"ready": true, "notes": ["no radio here"]}', flush=True)
sys.stdin.read()
open("setup.undone", "w").write(str(time.time_ns()))
"""


def service(source: str = SERVICE, name: str = "olsr") -> Program:
    return Program(name, (PYTHON, "-c", source), "routing.log")


def set_up(source: str = SETUP) -> Program:
    return Program("set-up", (PYTHON, "-c", source), "setup.log")


@pytest.fixture
def rove(tmp_path: Path) -> Iterator[Path]:
    """Whatever a test did, nothing may run when its supervisors have been ended."""
    yield tmp_path
    for place in (tmp_path / "runs").glob("*/*"):
        status, _ = supervise("end", place)
        assert status == 0
        assert processes_of(place) == []
        assert not (place / "supervisor.sock").exists()


def begin(place: Path) -> int:
    """The supervisor's process."""
    status, said = supervise("start", place)
    assert status == 0, said
    pid: int = said["pid"]
    return pid


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def stops(place: Path) -> list[dict[str, Any]]:
    return [r for r in read_records(place / "record" / "segments") if r["kind"] == "agent_stop"]


def ended(place: Path) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.json.decode((place / "ended.json").read_bytes())
    return said


async def start_agent(channel: AgentChannel) -> None:
    await channel.ask(StartAgent(), PATIENCE_S)
    assert (await channel.ask(Start(), PATIENCE_S)).state is State.RUNNING


def scenario(act: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(act(), 2 * PATIENCE_S))


def test_a_run_is_kept_and_ended_in_order(rove: Path) -> None:
    place = new_place(rove, setup=set_up(), services=(service(),))
    status, said = supervise("start", place)
    assert (status, said["ready"], said["protocol"]) == (0, True, PROTOCOL)
    assert said["notes"] == ["no radio here"]
    assert (place / "supervisor.sock").stat().st_mode & 0o777 == 0o600

    async def act() -> None:
        async with attached(place) as channel:
            await start_agent(channel)
            await until(lambda: (place / "service.runs").exists())
            assert not (place / "setup.undone").exists()
            await channel.ask(End("enough"), PATIENCE_S)
            assert ended(place)["reason"] == "enough" and ended(place)["in_order"]
            others = {said["pid"], *processes_of(place, b"attach")}
            assert set(processes_of(place)) - others == set()

    scenario(act)
    [stop] = stops(place)
    assert stop["reason"] == "enough"
    assert stop["t_ns"] < int((place / "service.ended").read_text())
    assert int((place / "service.ended").read_text()) < int((place / "setup.undone").read_text())
    assert (place / "record" / "routing.log").read_text() == "the service runs\n"


@pytest.mark.parametrize("supervisor_too", [False, True], ids=["alone", "with its supervisor"])
def test_what_a_killed_service_left_is_removed(rove: Path, supervisor_too: bool) -> None:
    undone = rove / "undone"
    undo = (PYTHON, "-c", f"open({str(undone)!r}, 'w')")
    place = new_place(rove, services=(structs.replace(service(), undo=undo),))
    supervisor = begin(place)
    scenario(lambda: until(lambda: (place / "service.runs").exists()))
    killed = [pid for pid in processes_of(place) if pid != supervisor]
    for pid in [*([supervisor] if supervisor_too else []), *killed]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    status, _ = supervise("end", place)
    assert status == 0
    assert undone.exists()


def test_a_service_that_ends_in_order_has_nothing_to_be_removed(rove: Path) -> None:
    place = new_place(rove, services=(structs.replace(service(), undo=(PYTHON, "-c", "1/0")),))
    begin(place)
    scenario(lambda: until(lambda: (place / "service.runs").exists()))
    assert supervise("end", place)[0] == 0
    assert ended(place)["in_order"], ended(place)


def test_when_the_lease_ends_all_ends_in_order(rove: Path) -> None:
    place = new_place(rove, lease=1.0, setup=set_up(), services=(service(),))
    supervisor = begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await channel.ask(Renew(PATIENCE_S), PATIENCE_S)
            await start_agent(channel)
            await channel.ask(OpenSources(), PATIENCE_S)
            with pytest.raises(AgentLost, match="no valid lease"):
                await channel.ask(Renew(-1.0), PATIENCE_S)
            await channel.ask(Renew(0.3), PATIENCE_S)
        await until(lambda: gone(supervisor))

    scenario(act)
    assert ended(place) | {"t_ns": 0} == {
        "reason": "the lease ended",
        "t_ns": 0,
        "in_order": True,
        "trouble": [],
    }
    assert [stop["reason"] for stop in stops(place)] == ["the lease ended"]
    assert inspect(place / "record" / "segments").complete
    assert (place / "setup.undone").exists() and (place / "service.ended").exists()


def test_a_lease_that_nobody_renews_ends_without_an_owner(rove: Path) -> None:
    place = new_place(rove, lease=0.3)
    supervisor = begin(place)
    scenario(lambda: until(lambda: gone(supervisor)))
    assert ended(place)["reason"] == "the lease ended"


def test_a_run_goes_on_without_its_owner_and_a_new_one_takes_over(rove: Path) -> None:
    place = new_place(rove)
    begin(place)

    async def act() -> None:
        async with attached(place) as first:
            await start_agent(first)
        async with attached(place) as second:
            assert (await second.ask(AskStatus(), PATIENCE_S)).state is State.RUNNING
            async with attached(place) as third:
                assert (await third.ask(AskStatus(), PATIENCE_S)).state is State.RUNNING
                with pytest.raises(AgentLost):
                    await second.ask(AskStatus(), PATIENCE_S)
                await third.ask(End("enough"), PATIENCE_S)

    scenario(act)


def test_clock_and_lease_are_answered_while_the_agent_is_not(rove: Path) -> None:
    """And an answer that comes late for one owner is not given to the next, whatever its number."""
    place = new_place(rove)
    begin(place)

    async def act() -> None:
        async with attached(place) as first:
            await start_agent(first)
            [agent] = processes_of(place, b"--config")
            os.kill(agent, signal.SIGSTOP)
            slow = asyncio.create_task(first.ask(AskStatus(), PATIENCE_S))
            before = time.time_ns()
            report = await first.ask(AskClock(), PATIENCE_S)
            assert before <= report.now_ns <= time.time_ns()
            await first.ask(Renew(60.0), PATIENCE_S)
            assert not slow.done()
            async with attached(place) as second:
                for _ in range(3):  # number 5 of the first owner is still to be answered
                    await second.ask(AskClock(), PATIENCE_S)
                stop = asyncio.create_task(second.ask(Stop("number five"), PATIENCE_S))
                await asyncio.sleep(0.1)
                os.kill(agent, signal.SIGCONT)
                assert (await stop).state is State.STOPPED
            with pytest.raises(AgentLost):
                await slow

    scenario(act)


def test_an_agent_that_crashes_is_reported_and_remembered(rove: Path) -> None:
    place = new_place(rove)
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await start_agent(channel)
            [agent] = processes_of(place, b"--config")
            os.kill(agent, signal.SIGKILL)
            await until(lambda: channel.failure)
            assert channel.failure == "the agent was ended by SIGKILL"
            with pytest.raises(AgentLost, match="SIGKILL"):
                await channel.ask(AskStatus(), PATIENCE_S)
            await channel.ask(AskClock(), PATIENCE_S)
        async with attached(place) as later:
            assert later.failure == "the agent was ended by SIGKILL"
            await start_agent(later)
        async with attached(place) as healed:
            assert healed.failure == ""
            await healed.ask(End("enough"), PATIENCE_S)

    scenario(act)
    assert ended(place)["in_order"]


def test_an_agent_that_cannot_run_says_why(rove: Path) -> None:
    place = new_place(rove)
    (place / "agent.json").write_text("{}")
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await channel.ask(StartAgent(), PATIENCE_S)
            await until(lambda: channel.failure)
            assert channel.failure.startswith("the agent ended with status 2: agent.json: ")

    scenario(act)


def test_an_agent_killed_as_a_fault_starts_again_with_a_new_boot(rove: Path) -> None:
    place = new_place(rove)
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            with pytest.raises(AgentLost, match="not running"):
                await channel.ask(KillAgent(), PATIENCE_S)
            await start_agent(channel)
            with pytest.raises(AgentLost, match="is running"):
                await channel.ask(StartAgent(), PATIENCE_S)
            await channel.ask(KillAgent(), PATIENCE_S)
            with pytest.raises(AgentLost, match="not running"):
                await channel.ask(AskStatus(), PATIENCE_S)
            await start_agent(channel)
            assert channel.failure == ""
            await channel.ask(Stop("end of run"), PATIENCE_S)
            await channel.ask(End("enough"), PATIENCE_S)
            assert channel.failure == ""

    scenario(act)
    assert ended(place)["in_order"]
    assert max(record["boot"] for record in read_records(place / "record" / "segments")) == 2


def test_a_service_that_dies_is_reported_and_remembered(rove: Path) -> None:
    dying = "import sys, time; time.sleep(0.5); sys.exit('no such interface')"
    place = new_place(rove, services=(service(dying),))
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await until(lambda: channel.failure)
            assert channel.failure == "olsr ended with status 1: no such interface"
        async with attached(place) as later:
            assert later.failure == "olsr ended with status 1: no such interface"
            await later.ask(End("enough"), PATIENCE_S)

    scenario(act)
    assert not ended(place)["in_order"]
    assert ended(place)["trouble"] == ["olsr ended with status 1: no such interface"]


@pytest.mark.parametrize(
    ("programs", "complaint"),
    [
        ({"setup": set_up("""print('{"error": "there is no wlan0"}')""")}, "set-up: there is no wlan0"),
        ({"setup": set_up("import sys; sys.exit('needs iw')")}, "set-up ended with status 1: needs iw"),
        ({"setup": set_up("print('what')")}, "set-up: what"),
        ({"setup": Program("set-up", ("/no/setup",), "x")}, "set-up: there is no /no/setup"),
        (
            {"services": (Program("olsr", ("/no/olsr",), "x"),)},
            "olsr ended with status 127: /no/olsr: No such",
        ),
    ],
)
def test_what_cannot_start_is_one_clear_error_and_leaves_nothing(
    rove: Path, programs: dict[str, Any], complaint: str
) -> None:
    first = Program("first", (PYTHON, "-c", SERVICE), "first.log")
    services = programs.get("services", ())
    place = new_place(rove, **(programs | {"services": (first, *services)}))
    status, said = supervise("start", place)
    assert status == 1 and said["error"].startswith(complaint)
    assert processes_of(place) == []
    assert complaint in ended(place)["reason"]


def test_a_bad_order_is_one_clear_error(rove: Path) -> None:
    place = new_place(rove, lease=-3.0)
    status, said = supervise("start", place)
    assert status == 1 and said == {"error": f"{place}/order.json: lease: -3 s is no valid lease"}


def test_another_version_is_refused(rove: Path) -> None:
    place = new_place(rove, protocol=PROTOCOL + 1)
    status, said = supervise("start", place)
    assert status == 1 and "deploy the same version" in said["error"]


def test_an_owner_of_another_version_is_refused_and_takes_nothing_over(rove: Path) -> None:
    place = new_place(rove)
    begin(place)

    async def act() -> None:
        async with attached(place) as owner:
            with pytest.raises(AgentLost, match="refused: the orchestrator speaks version"):
                async with attached(place, PROTOCOL + 1):
                    pass
            await owner.ask(AskClock(), PATIENCE_S)

    scenario(act)


@pytest.mark.parametrize("line", [b"what\n", b'{"do": {"do": "status"}, "id": 1}\n', b"\n", b'{"id": 1}\n'])
def test_who_does_not_say_hello_is_turned_away(
    rove: Path, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = new_place(rove)
    begin(place)
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect("supervisor.sock")
        client.sendall(line)
        with client.makefile("rb") as lines:
            told = lines.read()
    assert msgspec.json.decode(told)["error"].startswith("refused: ")


def test_there_is_one_supervisor_in_a_place(rove: Path) -> None:
    place = new_place(rove)
    begin(place)
    status, said = supervise("start", place)
    assert status == 3 and "already" in said["error"]


def test_of_several_supervisors_at_once_one_stays(rove: Path) -> None:
    place = new_place(rove)
    start = [PYTHON, "-m", "node_agent.supervisor", "start", str(place)]
    starting = [subprocess.Popen(start, stdout=subprocess.PIPE) for _ in range(3)]
    told = [process.communicate(timeout=2 * PATIENCE_S)[0] for process in starting]
    assert sorted(process.returncode for process in starting) == [0, 3, 3], told
    assert len(processes_of(place)) == 1


def test_a_supervisor_can_be_asked_in_a_pipeline(rove: Path) -> None:
    place = new_place(rove)
    begin(place)
    asked = b"".join(encode(Request(command, 7)) for command in (Hello(PROTOCOL), AskClock()))
    attach = [PYTHON, "-m", "node_agent.supervisor", "attach", str(place)]
    done = subprocess.run(attach, input=asked, capture_output=True, timeout=PATIENCE_S, check=True)
    assert [msgspec.json.decode(line)["id"] for line in done.stdout.splitlines()] == [7, 7]


def test_a_supervisor_stops_in_order_on_a_signal(rove: Path) -> None:
    place = new_place(rove, services=(service(),))
    supervisor = begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await start_agent(channel)
            os.kill(supervisor, signal.SIGTERM)
            await until(lambda: channel.failure)
            assert channel.failure == "the run ends on this node: asked by a signal"
            await until(lambda: gone(supervisor))

    scenario(act)
    assert ended(place)["in_order"] and len(stops(place)) == 1


def test_who_comes_while_a_run_ends_is_told_why_it_does(rove: Path) -> None:
    slow = SETUP.replace("sys.stdin.read()", "sys.stdin.read(); time.sleep(3)")
    place = new_place(rove, lease=0.5, setup=set_up(slow))
    begin(place)

    async def act() -> None:
        await until(lambda: "ends: the lease ended" in (place / "record" / "supervisor.log").read_text())
        async with attached(place) as late:
            for command in (Renew(30.0), StartAgent()):
                with pytest.raises(AgentLost, match="the run ends on this node: the lease ended"):
                    await late.ask(command, PATIENCE_S)

    scenario(act)


def test_what_a_killed_supervisor_leaves_is_ended(rove: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    place = new_place(rove, setup=set_up(), services=(service(), service(deaf, "deaf")))
    supervisor = begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await start_agent(channel)
            os.kill(supervisor, signal.SIGKILL)
            await until(lambda: gone(supervisor))
        assert supervise("status", rove)[1]["places"][0]["state"] == "dead"
        status, said = supervise("end", place, "--reason", "cleaning up")
        assert (status, said["was"], said["left"]) == (0, "dead", [])
        assert said["ended"]["reason"] == "cleaning up" and not said["ended"]["in_order"]
        assert supervise("end", place)[1]["was"] == "ended"

    scenario(act)
    assert [stop["reason"] for stop in stops(place)] == ["control closed"]
    assert (place / "setup.undone").exists() and (place / "service.ended").exists()


def test_what_escaped_its_supervisor_is_found_by_its_mark(rove: Path) -> None:
    escaping = "import os, subprocess, sys, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(600)\n"
    escaping += "print(1)\ntime.sleep(600)"
    place = new_place(rove, services=(service(escaping),))
    begin(place)
    scenario(lambda: until(lambda: (place / "record" / "routing.log").exists()))
    time.sleep(0.5)
    status, said = supervise("end", place, "--reason", "enough")
    assert (status, said["was"]) == (0, "running")
    assert processes_of(place) == []
    assert not said["ended"]["in_order"] and "had to be ended" in said["ended"]["trouble"][0]


def test_after_a_reboot_a_place_is_dead_and_nobody_waits_for_it(
    rove: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = new_place(rove)
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind("supervisor.sock")
    (place / "supervisor.pid").write_text(str(os.getpid()))
    assert supervise("status", rove)[1]["places"][0]["state"] == "dead"
    attach = [PYTHON, "-m", "node_agent.supervisor", "attach", str(place)]
    done = subprocess.run(attach, capture_output=True, timeout=PATIENCE_S, text=True)
    assert done.returncode == 4 and "no supervisor answers here" in done.stderr
    assert supervise("end", place)[1]["was"] == "dead"


def test_status_tells_of_every_place_without_disturbing_it(rove: Path) -> None:
    place = new_place(rove)
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await start_agent(channel)
            _, said = supervise("status", rove)
            [told] = said["places"]
            assert (told["run"], told["node"], told["state"]) == ("run-1", "n1", "running")
            assert 0 < told["lease"]["left"] <= 30 and told["lease"]["owned"] and told["lease"]["agent"]
            assert len(told["pids"]) == 2 and told["record_bytes"] > 0
            await channel.ask(AskClock(), PATIENCE_S)

    scenario(act)
    assert supervise("end", place, "--reason", "enough")[1]["ended"]["reason"] == "enough"
    [told] = supervise("status", rove)[1]["places"]
    assert (told["state"], told["pids"], told["ended"]["in_order"]) == ("ended", [], True)


def test_a_place_that_is_gone_is_nothing_to_end(tmp_path: Path) -> None:
    status, said = supervise("end", tmp_path / "runs" / "r" / "n1")
    assert (status, said["was"], said["ended"]) == (0, "absent", None)
    assert supervise("status", tmp_path) == (0, {"places": []})


def test_a_directory_that_is_no_place_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    assert supervise("end", tmp_path / "letters")[1]["was"] == "absent"
    assert list((tmp_path / "letters").iterdir()) == []


def test_an_agent_without_room_for_its_log_is_refused_and_not_waited_for(rove: Path) -> None:
    place = new_place(rove)
    begin(place)
    (place / "record" / "agent.log").mkdir()

    async def act() -> None:
        async with attached(place) as channel:
            with pytest.raises(AgentLost, match=r"agent\.log"):
                await channel.ask(StartAgent(), PATIENCE_S)

    scenario(act)


def test_long_names_are_no_obstacle(rove: Path) -> None:
    place = new_place(rove / ("x" * 120))
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await channel.ask(Hello(PROTOCOL), PATIENCE_S)

    with pytest.raises(AgentLost, match="must be the first line"):
        scenario(act)
    assert supervise("end", place)[1]["was"] == "running"


def test_a_flood_on_the_agents_stderr_is_only_logged(rove: Path) -> None:
    flood = "import sys\nfor _ in range(20000): sys.stderr.write('x' * 99 + chr(10))\nsys.stdin.read()"
    place = new_place(rove, agent=Program("agent", (PYTHON, "-c", flood), "agent.log"))
    begin(place)

    async def act() -> None:
        async with attached(place) as channel:
            await channel.ask(StartAgent(), PATIENCE_S)
            await channel.ask(AskClock(), PATIENCE_S)
            await until(lambda: (place / "record" / "agent.log").stat().st_size == 2_000_000)
            await channel.ask(KillAgent(), PATIENCE_S)

    scenario(act)
