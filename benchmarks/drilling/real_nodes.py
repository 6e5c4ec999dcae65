"""Drills on real OpenSSH servers: their helpers die, their disks fill up or are lost, two runs use them at
once.
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.drilling.checks import own_reasons, verdict_of
from benchmarks.drilling.disk import hooked
from benchmarks.drilling.drill import Drill, small_disk
from benchmarks.drilling.full_disks import FILLER, check_message, fill
from benchmarks.drilling.moments import Moment, come
from benchmarks.drilling.power_loss import cut_power, forgetful_disk
from benchmarks.drilling.settling import follow_up, settle
from orchestrator.runs.run_directory import RunDirectory
from tests.ssh.lab import LabNode
from tests.ssh.sshd import FIRST_ID

DISK_ON_NODE = 96 << 20
HELPERS: dict[str, tuple[str, ...]] = {
    "supervisor": ("node_agent.supervisor", "run"),
    "bridge": ("node_agent.supervisor", "attach"),
    "agent": ("node_agent.agent",),
    "routing daemon": ("node_agent.olsr",),
}


def _node(drill: Drill) -> LabNode:
    assert drill.lab is not None
    return drill.dice.choice(drill.lab.nodes)


def node_helper(drill: Drill) -> None:
    """Kills each helper in several phases: either it is restarted, or the run is spoiled and says so."""
    number, which = divmod(drill.number, len(HELPERS))
    name = list(HELPERS)[which]
    phase = ("measure", "converge", "stop", "up", "warm-up", "collect")[number % 6]
    node = _node(drill)
    drill.note(f"kill -9 to the {name} of {node.name} in {phase}")
    process = drill.start_run(drill.experiment(duration="3 s"))
    come(drill, drill.run, Moment(phase), process)
    time.sleep(drill.dice.uniform(0.0, 0.5))
    with suppress(ProcessLookupError):
        node.kill(*HELPERS[name])
    settle(drill, drill.run, drill.wait(process))


def same_nodes(drill: Drill) -> None:
    """Starts two runs on the same nodes at once: each has its own place, and neither takes the other down."""
    later = drill.dice.uniform(0.0, 3.0)
    drill.note(f"a second run after {later:.1f} s")
    first = drill.start_run(drill.experiment())
    time.sleep(later)
    second = drill.start("run", drill.experiment("second"), "--run-id", "r2", "--no-analyze")
    codes = [drill.wait(process) for process in (first, second)]
    other = RunDirectory(drill.run.path.with_name("r2"))
    drill.note(f"exit codes {codes}, {own_reasons(drill.run)}, {own_reasons(other)}")
    settle(drill, drill.run, codes[0], follow=False)
    settle(drill, other, codes[1])


def full_node(drill: Drill) -> None:
    """Fills a node's disk from some phase on: it must be that node's outcome, and the run must say so."""
    phase = ("up", "converge", "measure", "stop")[drill.number % 4]
    node = _node(drill)
    drill.note(f"the disk of {node.name} is full in {phase}")
    with node.small_disk(DISK_ON_NODE) as disk:
        process = drill.start_run(drill.experiment(duration="3 s", quorum=0.5))
        come(drill, drill.run, Moment(phase), process)
        fill(disk, drill.dice.choice((0, 4096)))
        code = drill.wait(process)
        (disk / FILLER).unlink()
        settle(drill, drill.run, code, follow=False)
    follow_up(drill)


def full_here(drill: Drill) -> None:
    """Fills the disk here: records stay on their nodes until there is room."""
    phase = ("collect", "stop", "measure", "up", "down")[drill.number % 5]
    drill.note(f"full here in {phase}")
    with small_disk(drill, 8 << 20) as disk:
        process = drill.start_run(drill.experiment())
        come(drill, drill.run, Moment(phase), process)
        fill(disk, drill.dice.choice((0, 4096, 16384)))
        code = drill.wait(process)
        check_message(drill, code)
        (disk / FILLER).unlink()
        settle(drill, drill.run, code)


def power_loss_here(drill: Drill) -> None:
    """This machine loses unsynced data: each record must be on its node, or durable here, or both."""
    phase, state = STAGES[drill.number % len(STAGES)]
    torn = drill.dice if drill.number % 2 else None
    drill.note(f"power lost here at {phase} {state}, {'torn' if torn else 'strictly'}")
    disk = forgetful_disk(drill)
    process = drill.start_run(drill.experiment(), env=hooked(drill, **disk.variable))
    if come(drill, drill.run, Moment(phase, state), process):
        time.sleep(drill.dice.uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
    code = drill.wait(process)
    cut_power(drill, disk, code, torn)
    settle(drill, drill.run, code)


def lost_node_disk(drill: Drill) -> None:
    """A node loses power and its disk, and comes back empty; or only its records vanish."""
    assert drill.lab is not None
    phase = ("measure", "stop", "converge", "collect")[drill.number // 2 % 4]
    node = _node(drill)
    how = "power and disk" if drill.number % 2 == 0 else "its runs"
    drill.note(f"{node.name} loses {how} in {phase}")
    process = drill.start_run(drill.experiment(duration="3 s", quorum=0.5))
    come(drill, drill.run, Moment(phase), process)
    if drill.number % 2 == 0:
        drill.lab.power_off(node)
        _wipe(node.server.home)
        drill.lab.power_on(node)
    else:
        shutil.rmtree(node.home / ".rove" / "runs", ignore_errors=True)
    code = drill.wait(process)
    verdict = verdict_of(drill.run).get("verdict")
    if verdict == "valid" and phase != "collect":
        drill.found.wrong_verdicts.append(f"valid, though {node.name} lost {how} in {phase}")
    settle(drill, drill.run, code, gone=[node.name])


def lost_before_collection(drill: Drill) -> None:
    """The run is torn down at once, a node loses its disk, and only then its record is asked for."""
    node = _node(drill)
    drill.note(f"{node.name} loses its records before rove collect")
    process = drill.start_run(drill.experiment(duration="60 s"))
    come(drill, drill.run, Moment("measure"), process)
    time.sleep(1.0)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    code = drill.wait(process)
    _wipe(node.home)
    settle(drill, drill.run, code, gone=[node.name])


def node_clock_step(drill: Drill) -> None:
    """The clock of this machine jumps while nodes measure: their times and ours do not fit any more."""
    step = (2.0, -2.0)[drill.number % 2]
    drill.note(f"the clock here steps by {step:g} s")
    trigger = drill.folder / "step"
    experiment = drill.experiment(duration="4 s", clocks={"uncertainty": "500 ms"})
    process = drill.start_run(experiment, env=hooked(drill, ROVE_DRILL_CLOCK=str(trigger)))
    come(drill, drill.run, Moment("measure"), process)
    unfinished = drill.folder / "unfinished"
    unfinished.write_text(str(step))
    unfinished.rename(trigger)
    code = drill.wait(process)
    if verdict_of(drill.run).get("verdict") == "valid":
        drill.found.wrong_verdicts.append("valid, though the clock stepped")
    settle(drill, drill.run, code)


def reused_supervisor_pid(drill: Drill) -> None:
    """A supervisor was killed, and its file names another process of that node's user by now."""
    node = _node(drill)
    drill.note(f"the supervisor's file on {node.name} names a stranger")
    process = drill.start_run(drill.experiment(duration="60 s"))
    come(drill, drill.run, Moment("measure"), process)
    process.send_signal(signal.SIGKILL)
    code = drill.wait(process)
    node.kill(*HELPERS["supervisor"])
    stranger, pid_here, pid_there = _stranger(drill, node)
    place = node.home / ".rove" / "runs" / drill.run.id / node.name
    node.write(place / "supervisor.pid", str(pid_there).encode())
    drill.rove("down", drill.run.id)
    if stranger.poll() is None:
        os.kill(pid_here, signal.SIGKILL)
    else:
        drill.found.wrong_verdicts.append("rove down ended a stranger on the node")
    stranger.wait(10)
    settle(drill, drill.run, code)


def _stranger(drill: Drill, node: LabNode) -> tuple["subprocess.Popen[bytes]", int, int]:
    """Starts a process of the node's user;
    returns who waits for it, its pid here, and its pid on the node.
    """
    where = ["nsenter", "-t", str(node.server.processes()[0]), "--mount", "--pid"]
    who = ["setpriv", f"--reuid={FIRST_ID}", f"--regid={FIRST_ID}", "--clear-groups", "sleep", "300"]
    process = subprocess.Popen([*where, *who], start_new_session=True)
    pids: list[int] = []

    def there() -> bool:
        pids.extend(pid for pid in node.server.processes() if _name(pid) == "sleep")
        return bool(pids)

    drill.until(there)
    status = Path(f"/proc/{pids[0]}/status").read_text()
    seen = next(line.split() for line in status.splitlines() if line.startswith("NSpid"))
    return process, pids[0], int(seen[-1])


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _wipe(home: Path) -> None:
    shutil.rmtree(home / ".rove", ignore_errors=True)


STAGES = (
    ("collect", "started"),
    ("collect", "finished"),
    ("down", "started"),
    ("down", "finished"),
    ("measure", "started"),
    ("up", "started"),
    ("stop", "finished"),
    ("verdict", "started"),
)
