"""``python -m node_agent.supervisor.lifeline -- PROGRAM …``: runs it while standard input stays open.

The kernel closes the pipe however its other end dies, so a program that only root could end does not outlive
the supervisor that started it. The program's output goes to standard error, which is a log of limited size.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

from node_agent.host.file_limit import limit_files

EXIT_NOT_STARTED = 127
GRACE_S = 5.0
_LOOK_S = 0.02
_READY = b'{"ready": true}\n'


def main(argv: list[str]) -> int:
    """Returns the program's status; 128 + the number of a signal that ended it."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)  # it only has to wake the poll below
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True, preexec_fn=limit_files
        )
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return EXIT_NOT_STARTED
    try:
        with suppress(OSError):  # nobody reads: noticed below
            os.write(1, _READY)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        _until_let_go(child, woken)
        _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while not _has_ended(child) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
    finally:
        _signal(child, signal.SIGKILL)  # with everything it started
        status = child.wait()
    return status if status >= 0 else 128 - status


def _until_let_go(child: "subprocess.Popen[bytes]", woken: int) -> None:
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while not _has_ended(child):
        ready = [descriptor for descriptor, _ in poll.poll()]
        if 0 in ready and not os.read(0, 4096):
            return
        if woken in ready and set(os.read(woken, 4096)) - {signal.SIGCHLD}:
            return


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    """Keeps the ended child in the process table: otherwise its number could be another group's by then."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--"] or len(sys.argv) < 3:
        sys.exit("usage: python -m node_agent.supervisor.lifeline -- PROGRAM [ARGUMENT]…")
    sys.exit(main(sys.argv[2:]))
