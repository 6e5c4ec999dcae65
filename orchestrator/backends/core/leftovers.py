"""What a session of CORE left on its host where core-daemon knows nothing of it: found, and removed.

A daemon that crashed forgets its sessions; their processes, bridges and directories live on. So the driver
notes each session in a file, before anything of it is started. ``leftovers.py find|remove FILE`` goes by that
file alone: it needs neither a daemon nor CORE's Python. Nothing is touched unless

- the directory is the one that was noted (same inode, and our mark in it where it could be written), or is
  gone. CORE refuses to use a directory that exists, so until then its number and names are ours;
- a process is a ``vnoded`` or ``emane`` that was called with a path in that directory, after the note;
- an interface carries the session's number in its name, and is newer than the note.

Uploaded next to the driver: the standard library alone, and a Python that may be 3.10.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MARK_FILE = "rove.run"
PROGRAMS = ("vnoded", "emane")
WAIT_S = 5.0
COMMAND_S = 10.0
_DIRECTORY = re.compile(r"pycore\.(\d+)")
_PROC = Path("/proc")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
Json = dict[str, Any]


# Pure


def short_id(session: int) -> str:
    """As CORE shortens a session's number for the names of interfaces."""
    return f"{(session >> 8) ^ (session & 0xFF):x}"


def is_program_of(argv: list[str], directory: str) -> bool:
    """Was it called as a program of CORE's, with a path in the session's directory?"""
    inside = any(word == directory or word.startswith(f"{directory}/") for word in argv[1:])
    return bool(argv) and Path(argv[0]).name in PROGRAMS and inside


def interfaces_of(session: int, newest: int, present: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Bridges and ends of nodes that carry the session's number, and are newer than index ``newest``."""
    name = re.compile(rf"(?:b\.|veth|beth|tap|ctrl)[0-9A-Za-z.]*\.{re.escape(short_id(session))}")
    return [(index, one) for index, one in present if index > newest and name.fullmatch(one)]


# The note


def note(file: Path, mark: str, session: int, directory: str) -> None:
    """Before anything of the session is started. Raises OSError."""
    noted = {
        "mark": mark,
        "session": session,
        "directory": directory,
        "identity": _identity(directory),
        "marked": _write_mark(Path(directory, MARK_FILE), mark),
        "ticks": int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")),
        "newest_interface": max((index for index, _ in socket.if_nameindex()), default=0),
        "boot": _BOOT.read_text().strip(),
    }
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("w") as stream:
        json.dump(noted, stream)
        stream.flush()
        os.fsync(stream.fileno())


def _write_mark(file: Path, mark: str) -> bool:
    """The directory is the daemon's, which is root."""
    try:
        file.write_text(mark)
        return True
    except PermissionError:
        return _done(["sudo", "-n", "tee", str(file)], mark)
    except OSError:
        return False


def _read(file: Path) -> Json:
    """Empty if there is none: then nothing was begun, or all has been removed."""
    try:
        noted: Json = json.loads(file.read_text())
        return noted
    except FileNotFoundError:
        return {}


# The host


def _identity(directory: str) -> list[int]:
    facts = Path(directory).lstat()
    return [facts.st_dev, facts.st_ino]


def _is_there(noted: Json) -> bool:
    """Is the session's directory still there, and ours?"""
    directory = Path(noted["directory"])
    try:
        if not _DIRECTORY.fullmatch(directory.name) or _identity(str(directory)) != noted["identity"]:
            return False
        return not noted["marked"] or (directory / MARK_FILE).read_text() == noted["mark"]
    except OSError:
        return False


def _is_current(noted: Json) -> bool:
    """Do the number and names of the session still mean the one that was noted?"""
    same_boot = _BOOT.read_text().strip() == noted["boot"]  # nothing but files survives a restart
    return same_boot and (_is_there(noted) or not os.path.lexists(noted["directory"]))


def _processes(noted: Json) -> list[int]:
    if not _is_current(noted):
        return []
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return sorted(pid for pid in pids if _is_process(pid, noted))


def _is_process(pid: int, noted: Json) -> bool:
    return is_program_of(_argv(pid), noted["directory"]) and _started(pid) >= noted["ticks"]


def _started(pid: int) -> int:
    """In clock ticks since the machine was started; -1 for one that is gone."""
    try:
        # The command name in parentheses may itself hold spaces and parentheses.
        return int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return -1


def _argv(pid: int) -> list[str]:
    try:
        return os.fsdecode((_PROC / str(pid) / "cmdline").read_bytes()).rstrip("\0").split("\0")
    except OSError:
        return [""]


def _interfaces(noted: Json) -> list[tuple[int, str]]:
    session = noted["session"]
    others = (_DIRECTORY.fullmatch(path.name) for path in Path(noted["directory"]).parent.glob("pycore.*"))
    numbers = [int(match[1]) for match in others if match and int(match[1]) != session]
    if not _is_current(noted) or short_id(session) in map(short_id, numbers):
        return []  # in the second case, names do not tell which of two sessions it is of
    return interfaces_of(session, noted["newest_interface"], socket.if_nameindex())


def find(file: Path) -> list[str]:
    """What is left, in words."""
    noted = _read(file)
    if not noted:
        return []
    return [
        *(f"{Path(_argv(pid)[0]).name} {pid}" for pid in _processes(noted)),
        *(f"interface {name}" for _, name in _interfaces(noted)),
        *([f"directory {noted['directory']}"] if _is_there(noted) else []),
    ]


def remove(file: Path) -> None:
    """As root. May be repeated."""
    noted = _read(file)
    if not noted:
        return
    deadline = time.monotonic() + WAIT_S
    while (alive := _processes(noted)) and time.monotonic() < deadline:
        for pid in alive:
            _kill(pid, noted)
        time.sleep(0.02)
    for index, name in _interfaces(noted):
        if (index, name) in socket.if_nameindex():  # it may have gone with the end of a node
            _done(["ip", "link", "delete", "dev", name])
            _done(["nft", "delete", "table", "bridge", name])
    # The directory last: as long as it is there, the rest is known to be ours.
    if _is_there(noted) and not _processes(noted) and not _interfaces(noted):
        shutil.rmtree(noted["directory"])
    if not find(file):
        file.unlink()


def _kill(pid: int, noted: Json) -> None:
    """Whoever has this number now is looked at again once it is held: it may be another's by then."""
    with suppress(ProcessLookupError, PermissionError):
        held = os.pidfd_open(pid)
        try:
            if _is_process(pid, noted):
                signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)


def _done(argv: list[str], told: str = "") -> bool:
    try:
        return (
            subprocess.run(argv, input=told.encode(), capture_output=True, timeout=COMMAND_S).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def main() -> int:
    """Prints ``{"left": […]}``, or ``{"error": …}``."""
    verb, file = sys.argv[1], Path(sys.argv[2]).absolute()
    try:
        if verb == "remove" and find(file):
            if os.geteuid() != 0:
                program = str(Path(__file__).absolute())
                os.execvp("sudo", ["sudo", "-n", sys.executable, program, verb, str(file)])
            remove(file)
        elif verb == "remove":
            file.unlink(missing_ok=True)
        print(json.dumps({"left": find(file)}))
    except (OSError, ValueError, KeyError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
