"""Waits for the end of namespaces: the kernel frees one only when nothing holds it any more.

A throw-away namespace gives each watched one an id, and is notified when the kernel takes the id back.
"""

import time
from types import TracebackType
from typing import Self

from orchestrator.backends.netns import netlink, syscalls
from orchestrator.backends.netns.netlink import Netlink


class NamespaceExits:
    def __init__(self) -> None:
        self._expected: dict[int, str] = {}
        self._requests, self._notices = syscalls.in_own_thread(_open_elsewhere)

    def expect(self, name: str, descriptor: int) -> None:
        number = len(self._expected)
        self._requests.create(netlink.RTM_NEWNSID, netlink.new_namespace_id(number, descriptor))
        self._expected[number] = name

    def wait(self, timeout: float) -> list[str]:
        """Returns the names of those that still exist after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while self._expected and (left := deadline - time.monotonic()) > 0:
            ended = self._notices.dead_namespace(left)
            if ended is not None:
                self._expected.pop(ended, None)
        return list(self._expected.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()
        self._notices.close()


def _open_elsewhere() -> tuple[Netlink, Netlink]:
    syscalls.unshare(syscalls.CLONE_NEWNET)
    return Netlink(), Netlink(groups=(netlink.GROUP_NSID,))
