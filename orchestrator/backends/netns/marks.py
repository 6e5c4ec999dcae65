"""The mark of every kernel object of a run, and the exact test for it.

A name contains a digest of the run's id and directory, and the namespace itself has the same digest inside
(the alias of its ``lo``, set before it gets a name). Only an object that passes both tests is the run's: a
foreign object would have to copy both.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orchestrator.runs import processes

CONTROL = ".control"
"""The namespace of the bridge that connects all ``ctl0``; not a possible node name."""

AIR = ".air"
"""The namespace of the radio's ends when it uses veth instead of TAP; not a possible node name."""

NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_IN_NAME = 12


@dataclass(frozen=True)
class Mark:
    """A run and its directory: run ids are unique in one directory only."""

    run_id: str
    directory: Path

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.run_id}\0{self.directory.resolve()}".encode()).hexdigest()[:32]

    @property
    def group(self) -> str:
        """Name of the run's control group."""
        return f"rove-{self.digest[:_IN_NAME]}"

    def namespace(self, node: str) -> str:
        """Returns ``rove-<digest>-<node>``, or ``rove-<digest>.control``, as `ip netns` lists it."""
        return f"{self.group}{node}" if node in (CONTROL, AIR) else f"{self.group}-{node}"

    def node_of(self, namespace: str) -> str | None:
        """The inverse of ``namespace``; None for any other name."""
        node = namespace.removeprefix(self.group)
        node = node if node in (CONTROL, AIR) else node.removeprefix("-")
        known = node in (CONTROL, AIR) or NODE_NAME.fullmatch(node)
        return node if known and self.namespace(node) == namespace else None

    def alias(self, node: str) -> str:
        """Returns the alias of ``node``'s links, which `ip link` shows."""
        return f"rove {self.digest} {self.run_id} {node}"

    @property
    def environment(self) -> dict[str, str]:
        return processes.mark(self.run_id, self.directory)

    def processes(self) -> list[processes.Identity]:
        return processes.marked(self.run_id, self.directory)
