"""Reads how many frames the nodes' transmit queues had no room for, as the kernel counts them."""

from contextlib import suppress
from pathlib import Path

from orchestrator.backends.netns import names, syscalls
from orchestrator.backends.netns.layout import RADIO_LINK
from orchestrator.backends.netns.marks import Mark

_STATISTICS = Path("/proc/thread-self/net/dev")
_DROPPED_ON_SENDING = 11


def queue_drops(mark: Mark, directory: Path = names.HOST_NAMES) -> dict[str, int]:
    """Per node, since its interface was created; leaves out nodes whose namespace cannot be found."""
    with names.names_of(mark, directory) as found:
        return syscalls.in_own_thread(
            lambda: {
                named.node: dropped
                for named in found
                if named.descriptor is not None and (dropped := _inside(named.descriptor)) is not None
            }
        )


def _inside(namespace: int) -> int | None:
    with suppress(OSError):
        syscalls.setns(namespace, syscalls.CLONE_NEWNET)
        for line in _STATISTICS.read_text().splitlines():
            link, _, numbers = line.partition(":")
            if link.strip() == RADIO_LINK:
                return int(numbers.split()[_DROPPED_ON_SENDING])
    return None
