"""What Prometheus finds: each run that goes on, and each of its nodes, with labels that tell them apart.

The same list is offered over HTTP and written to a file. A run that has ended stays in it for a while,
without its nodes, so that its verdict is seen.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from orchestrator.live.facts import RunFacts
from orchestrator.live.metrics import NODE, TARGET_LABELS
from orchestrator.live.prometheus.planned import planned
from orchestrator.runs.files import write_atomic
from orchestrator.runs.run_directory import RunDirectory

JOB = "rove"
LONGEST_LABEL = 200


class RunTarget(NamedTuple):
    """``labels``: those in ``TARGET_LABELS``. ``nodes``: those that can be asked."""

    labels: Mapping[str, str]
    nodes: tuple[str, ...]

    @property
    def run(self) -> str:
        return self.labels["run"]


def run_target(directory: RunDirectory, facts: RunFacts) -> RunTarget:
    """Nodes of a run in virtual time cannot be asked: they are no targets."""
    k = planned(facts).replicas
    values = (
        directory.id,
        facts.experiment,
        "" if facts.seed is None else str(facts.seed),
        str(k) if k else "",
        facts.backend,
    )
    labels = {name: value[:LONGEST_LABEL] for name, value in zip(TARGET_LABELS, values, strict=True)}
    return RunTarget(labels, () if facts.virtual else facts.nodes)


def node_labels(target: RunTarget, node: str) -> dict[str, str]:
    return {**target.labels, NODE: node, "instance": f"{target.run}/{node}"}


def run_path(run: str) -> str:
    return f"/runs/{quote(run, safe='')}/metrics"


def node_path(run: str, node: str) -> str:
    return f"/runs/{quote(run, safe='')}/nodes/{quote(node, safe='')}/metrics"


def service_discovery(targets: Iterable[RunTarget], address: str) -> bytes:
    """Returns the document of HTTP and file service discovery. ``address``: host and port of the server."""
    groups = []
    for target in targets:
        places = [(run_path(target.run), {**target.labels, "instance": target.run})]
        places += [(node_path(target.run, node), node_labels(target, node)) for node in target.nodes]
        groups += [
            {"targets": [address], "labels": {**labels, "__metrics_path__": path}} for path, labels in places
        ]
    return json.dumps(groups, indent=1, sort_keys=True).encode() + b"\n"


class TargetFile:
    """The file of service discovery: written when the list has changed, emptied at the end."""

    def __init__(self, path: Path, address: str) -> None:
        self._path = path
        self._address = address
        self._written: bytes | None = None

    def write(self, targets: Iterable[RunTarget]) -> None:
        """Readers see the list before or after, never half of it. Raises OSError."""
        content = service_discovery(targets, self._address)
        if content != self._written:
            write_atomic(self._path, content)
            self._written = content

    def close(self) -> None:
        """Leaves an empty list: nobody answers for the targets any more."""
        self.write(())
