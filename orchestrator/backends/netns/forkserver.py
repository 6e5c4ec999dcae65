"""The process from which node programs are forked: heavy modules are imported once, a child costs a fork.

``forkclient`` starts it. A request is one datagram of JSON, with the child's namespace and standard streams
as descriptors. The answers are ``{"id", "pid"}`` or ``{"id", "error"}``, then ``{"id", "status"}``. When its
owner ends, in whatever way, the server ends all its descendants and itself.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.backends.netns import forkchild, syscalls

MESSAGE_SIZE = 1 << 17


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    owner = _watch_parent(int(sys.argv[2]))
    if owner is None:
        return
    syscalls.adopt_orphans()
    try:
        for item in sys.argv[3:]:
            _preload(item)
    except Exception as error:
        control.send(json.dumps({"failed": f"cannot preload: {error}"}).encode())
        return
    # Objects left by the imports would otherwise be copied page by page when a child's collector visits them.
    gc.collect()
    gc.freeze()
    try:
        _Server(control, owner).serve()
    finally:
        _end_descendants()


def _preload(item: str) -> None:
    """Imports ``module``, or calls ``module:function:argument``."""
    name, _, call = item.partition(":")
    module = importlib.import_module(name)
    if call:
        function, _, argument = call.partition(":")
        getattr(module, function)(argument)


def _watch_parent(pid: int) -> int | None:
    """Uses a pidfd, not a parent-death signal: that would come when the *thread* that started us ends."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        if os.getppid() == pid:
            return descriptor
    return None


class _Server:
    def __init__(self, control: socket.socket, owner: int) -> None:
        self._control = control
        self._owner = owner
        self._ids: dict[int, int] = {}
        self._starting: dict[int, int] = {}
        self._poll = select.poll()
        self._wake_up, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for descriptor in (control.fileno(), owner, self._wake_up):
            self._poll.register(descriptor, select.POLLIN)

    def serve(self) -> None:
        """Serves until the owner closes its end, or ends, or SIGTERM comes."""
        self._answer(ready=True)
        while True:
            ready = [descriptor for descriptor, _ in self._poll.poll()]
            if self._owner in ready:
                return
            for descriptor in ready:
                if descriptor in self._starting:
                    self._report_start(descriptor)
            if self._wake_up in ready:
                if signal.SIGTERM in os.read(self._wake_up, 1 << 10):
                    return
                self._reap()
            if self._control.fileno() in ready and not self._handle_request():
                return

    def _handle_request(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_SIZE, forkchild.DESCRIPTORS)
        except ConnectionResetError:
            return False
        if not data:
            return False
        request = json.loads(data)
        try:
            if "signal" in request:
                self._signal(request["id"], request["signal"])
            else:
                self._spawn(request, descriptors)
        except OSError as error:
            self._answer(id=request["id"], error=str(error))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _signal(self, number: int, what: int) -> None:
        # A child is forgotten when it is reaped, so this pid, and the group it leads, cannot be another's.
        pid = next((pid for pid, known in self._ids.items() if known == number), None)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, what)

    def _spawn(self, request: dict[str, Any], descriptors: list[int]) -> None:
        errors, child_errors = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
        except OSError:
            os.close(errors)
            os.close(child_errors)
            raise
        if pid == 0:
            forkchild.run(request, descriptors, child_errors)
        os.close(child_errors)
        self._ids[pid] = request["id"]
        self._starting[errors] = pid
        self._poll.register(errors, select.POLLIN)

    def _report_start(self, errors: int) -> None:
        """Reports a start. The child closes its end when its program starts;
        anything it wrote says why it could not."""
        pid = self._starting.pop(errors)
        self._poll.unregister(errors)
        problem = os.read(errors, forkchild.ERROR_SIZE).decode(errors="replace")
        os.close(errors)
        outcome = {"error": problem} if problem else {"pid": pid}
        self._answer(id=self._ids[pid], **outcome)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid not in self._ids:
                continue  # an orphan that we adopted
            for errors in [errors for errors, starting in self._starting.items() if starting == pid]:
                self._report_start(errors)
            self._answer(id=self._ids.pop(pid), status=os.waitstatus_to_exitcode(status))

    def _answer(self, **answer: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._control.send(json.dumps(answer).encode())


def _end_descendants() -> None:
    """Kills children until there are none: descendants that lose their parent become our children."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


def _children() -> list[int]:
    own = str(os.getpid())
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The command name in parentheses may contain spaces and parentheses.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[1] == own:
                    found.append(int(entry.name))
    return found


if __name__ == "__main__":
    main()
