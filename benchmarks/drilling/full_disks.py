"""The runs directory has no room from some phase on: a true verdict or one clear error, and nothing left."""

import subprocess
from pathlib import Path

from benchmarks.drilling.checks import verdict_of
from benchmarks.drilling.drill import Drill, small_disk
from benchmarks.drilling.moments import ENTRIES, PHASES, VERDICT, Moment, come
from benchmarks.drilling.settling import settle
from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.errors import EXIT_BAD_INPUT

DISK = 8 << 20
FILLER = "filler"
MOMENTS = (*(Moment(phase) for phase in PHASES), VERDICT, *ENTRIES[:4])
_TELLS = ("No space left",)


def fill(disk: Path, leave: int) -> None:
    """Fills the disk to the last byte but ``leave``."""
    with (disk / FILLER).open("wb", buffering=0) as file:
        block = bytes(1 << 20)
        while block:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]
        file.truncate(max(0, file.tell() - leave))


def full_disk(drill: Drill) -> None:
    """Fills the disk at the beginning of each phase in turn; every third time in virtual time."""
    moment = MOMENTS[drill.number % len(MOMENTS)]
    backend = "sim" if drill.number % 3 == 2 else "netns"
    leave = drill.dice.choice((0, 0, 4096, 16384))
    drill.note(f"{backend}: full but for {leave} bytes at {moment}")
    with small_disk(drill, DISK) as disk:
        process = drill.start_run(drill.experiment(backend=backend))
        come(drill, drill.run, moment, process)
        fill(disk, leave)
        code = drill.wait(process)
        check_message(drill, code)
        _check_gone(drill)
        (disk / FILLER).unlink()
        settle(drill, drill.run, code)


def no_more_files(drill: Drill) -> None:
    """Limits the number of files and directories, like a disk without inodes."""
    files = drill.dice.randint(3, 44)
    backend = "sim" if drill.number % 3 == 2 else "netns"
    drill.note(f"{backend}: room for {files} files")
    with small_disk(drill, DISK, files) as disk:
        process = drill.start_run(drill.experiment(backend=backend))
        code = drill.wait(process)
        check_message(drill, code)
        _check_gone(drill)
        subprocess.run(["mount", "-o", "remount,nr_inodes=10000", str(disk)], check=True, timeout=20)
        settle(drill, drill.run, code)


def check_message(drill: Drill, code: int) -> None:
    """Checks that a run without a verdict says what the system refused, and for which file."""
    stderr = drill.stderr
    if code not in (0, 1, 2, 3):
        drill.found.wrong_verdicts.append(f"exit code {code}: {stderr[-300:]}")
    if verdict_of(drill.run) or code == EXIT_BAD_INPUT:  # it was refused before it began
        return
    lines = [line for line in stderr.splitlines() if any(sign in line for sign in _TELLS)]
    if not any("/" in line for line in lines):
        drill.found.wrong_verdicts.append(
            f"neither a verdict nor an error that names a path: {stderr[-300:]}"
        )


def _check_gone(drill: Drill) -> None:
    """Checks that nothing stays in the kernel, even before `rove down`, although the disk is full."""
    left = network.leftovers(Mark(drill.run.id, drill.run.path))
    drill.found.leftovers.extend(f"before rove down: {what}" for what in left)
