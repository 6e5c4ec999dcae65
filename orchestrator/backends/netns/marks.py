"""Whose is it? The mark that every kernel object of a run carries, and the exact test for it.

The digest in a name is computed from the run's id and directory, and the namespace itself carries the same
digest inside (alias of its ``lo``, set before it gets a name). Only what passes both tests is the run's own:
a foreign object would have to copy both.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orchestrator.runs import processes

CONTROL = ".control"
"""Not a possible node name: the namespace of the bridge that joins all ``ctl0``."""

AIR = ".air"
"""Not a possible node name: where the radio's ends are when it runs over veth instead of TAP."""

NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_IN_NAME = 12


@dataclass(frozen=True)
class Mark:
    """A run and the directory it lives in: run ids are unique in one place only."""

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
        """``rove-<digest>-<node>``, or ``rove-<digest>.control``: what `ip netns` lists."""
        return f"{self.group}{node}" if node in (CONTROL, AIR) else f"{self.group}-{node}"

    def node_of(self, namespace: str) -> str | None:
        """The inverse of ``namespace``; None for any name that it could not have made."""
        node = namespace.removeprefix(self.group)
        node = node if node in (CONTROL, AIR) else node.removeprefix("-")
        known = node in (CONTROL, AIR) or NODE_NAME.fullmatch(node)
        return node if known and self.namespace(node) == namespace else None

    def alias(self, node: str) -> str:
        """What links of ``node`` carry; readable with `ip link`."""
        return f"rove {self.digest} {self.run_id} {node}"

    @property
    def environment(self) -> dict[str, str]:
        return processes.mark(self.run_id, self.directory)

    def processes(self) -> list[processes.Identity]:
        return processes.marked(self.run_id, self.directory)
