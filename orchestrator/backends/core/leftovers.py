"""Finds and removes what a session of CORE left on its host, even if core-daemon does not know it.

A daemon that crashed forgets its sessions; their processes, bridges and directories stay. So the driver
records each session in a file before it starts anything. ``leftovers.py find|remove FILE`` uses that file
alone: it needs neither a daemon nor CORE's Python. It touches nothing unless

- the directory is the recorded one (same inode, and our mark in it where it could be written), or is gone:
CORE refuses to use a directory that exists, so until then its number and names are ours;
- a process is a ``vnoded`` or ``emane`` with a path in that directory as argument, started after the record;
- an interface has the session's number in its name, and is newer than the record.

Uploaded next to the driver: it uses the standard library alone, and Python may be 3.10.
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
    """Shortens a session's number as CORE does for names of interfaces."""
    return f"{(session >> 8) ^ (session & 0xFF):x}"


def is_program_of(argv: list[str], directory: str) -> bool:
    """Is it one of CORE's programs, with a path in the session's directory as argument?"""
    inside = any(word == directory or word.startswith(f"{directory}/") for word in argv[1:])
    return bool(argv) and Path(argv[0]).name in PROGRAMS and inside


def interfaces_of(session: int, newest: int, present: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Returns bridges and node ends with the session's number in their
    names that are newer than index ``newest``."""
    name = re.compile(rf"(?:b\.|veth|beth|tap|ctrl)[0-9A-Za-z.]*\.{re.escape(short_id(session))}")
    return [(index, one) for index, one in present if index > newest and name.fullmatch(one)]


# The record


def note(file: Path, mark: str, session: int, directory: str) -> None:
    """Records the session before anything of it is started. Raises OSError."""
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
    """Uses sudo if needed: the directory belongs to the daemon, which is root."""
    try:
        file.write_text(mark)
        return True
    except PermissionError:
        return _done(["sudo", "-n", "tee", str(file)], mark)
    except OSError:
        return False


def _read(file: Path) -> Json:
    """Returns an empty record if there is none: nothing was started, or all has been removed."""
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
    """Do the session's number and names still mean the recorded session?"""
    same_boot = _BOOT.read_text().strip() == noted["boot"]  # only files survive a restart
    return same_boot and (_is_there(noted) or not os.path.lexists(noted["directory"]))


def _processes(noted: Json) -> list[int]:
    if not _is_current(noted):
        return []
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return sorted(pid for pid in pids if _is_process(pid, noted))


def _is_process(pid: int, noted: Json) -> bool:
    return is_program_of(_argv(pid), noted["directory"]) and _started(pid) >= noted["ticks"]


def _started(pid: int) -> int:
    """Returns clock ticks since boot; -1 if the process is gone."""
    try:
        # The command name in parentheses may contain spaces and parentheses.
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
        return []  # in the second case the names fit two sessions
    return interfaces_of(session, noted["newest_interface"], socket.if_nameindex())


def find(file: Path) -> list[str]:
    """Returns what is left, as text."""
    noted = _read(file)
    if not noted:
        return []
    return [
        *(f"{Path(_argv(pid)[0]).name} {pid}" for pid in _processes(noted)),
        *(f"interface {name}" for _, name in _interfaces(noted)),
        *([f"directory {noted['directory']}"] if _is_there(noted) else []),
    ]


def remove(file: Path) -> None:
    """Removes everything; needs root. May be repeated."""
    noted = _read(file)
    if not noted:
        return
    deadline = time.monotonic() + WAIT_S
    while (alive := _processes(noted)) and time.monotonic() < deadline:
        for pid in alive:
            _kill(pid, noted)
        time.sleep(0.02)
    for index, name in _interfaces(noted):
        if (index, name) in socket.if_nameindex():  # it may have gone with a node
            _done(["ip", "link", "delete", "dev", name])
            _done(["nft", "delete", "table", "bridge", name])
    # The directory last: while it exists, the rest is known to be ours.
    if _is_there(noted) and not _processes(noted) and not _interfaces(noted):
        shutil.rmtree(noted["directory"])
    if not find(file):
        file.unlink()


def _kill(pid: int, noted: Json) -> None:
    """Checks the process again once it is held: its number may have been reused."""
    with suppress(ProcessLookupError, PermissionError):
        held = os.pidfd_open(pid)
        try:
            if _is_process(pid, noted):
                signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)


def _done(argv: list[str], input_text: str = "") -> bool:
    try:
        return (
            subprocess.run(argv, input=input_text.encode(), capture_output=True, timeout=COMMAND_S).returncode
            == 0
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
