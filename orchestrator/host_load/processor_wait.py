"""How long a process has waited for a processor, by the scheduler's counters."""

from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")


def waited_for_processor_s(pid: int, processes: Path = PROCESSES) -> float:
    """Returns how long the main thread of a process was ready to run while others ran. It is 0 if the process
    is gone, or where the kernel does not count it.
    """
    with suppress(OSError, ValueError):
        _, waited_ns, _ = map(int, (processes / str(pid) / "schedstat").read_bytes().split())
        return waited_ns / 1e9
    return 0.0
