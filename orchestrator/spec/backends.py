"""The registry of backends, and the value that describes one.

All other code asks for traits and never for a backend's name. A package adds a backend by an entry point of
the group ``rove.backends`` that leads to a ``BackendKind``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from node_agent.extensions import ExtensionError, Registry
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.problems import Finding

if TYPE_CHECKING:
    from orchestrator.spec.experiment import Experiment
    from orchestrator.spec.topology import Topology

AUTO = "auto"
"""Stands for the first backend that this machine can run."""


@dataclass(frozen=True)
class Traits:
    """How a backend differs from others."""

    virtual_time: bool = False
    """Time jumps from event to event, and several runs do not disturb each other."""
    remote: bool = False
    """Nodes are on other machines: reached over SSH, with clocks of their own, collected afterwards."""
    own_machines: bool = False
    """Every node is a machine with its own radio, whose range is unknown here."""
    shared_host: bool = False
    """All nodes are on one other machine, the one that ``topology.core`` names."""
    exclusive: bool = False
    """Two runs cannot go on at the same time: they would need the same nodes."""
    knows_links: bool = False
    """The true links are known here, so that routes can follow them without a protocol."""
    changes_air: bool = False
    """Radios can be switched off, links cut or weakened, nodes moved elsewhere, during the run."""
    link_feedback: bool = False
    """The link layer reports frames that it gave up."""


Create = Callable[[Any, str, Path, Journal], Backend]
"""Called with the run (a ``planning.planned.PlannedRun``), its id, its directory and its journal."""


def _nothing_wrong(experiment: "Experiment") -> list[Finding]:
    return []


def _nothing_to_prepare(experiments: "list[Experiment]", command: list[str]) -> None:
    return None


def _no_facts(topology: "Topology") -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class BackendKind:
    """One backend as a value."""

    summary: str
    """Describes the backend in one line."""
    traits: Traits
    create: Create
    """Creates the backend. It imports modules on call, so that one backend does not wait for another's."""
    timeouts: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase, for phases whose default is too short."""
    findings: Callable[["Experiment"], list[Finding]] = _nothing_wrong
    """Returns what of an experiment it cannot do; places start at the experiment."""
    prepare: Callable[["list[Experiment]", list[str]], None] = _nothing_to_prepare
    """Called before anything is created, with the cells and the command line of this process."""
    lacking: Callable[[], list[str]] | None = None
    """Returns what this machine lacks to run it, in words; None: ``auto`` never chooses it."""
    chosen_because: str = ""
    """Says why ``auto`` chose it."""
    facts: Callable[["Topology"], dict[str, str]] = _no_facts
    """Returns lines of ``rove plan``, by title."""


def _checked_backend(name: str, value: object) -> BackendKind:
    if not isinstance(value, BackendKind):
        kind = f"{BackendKind.__module__}.{BackendKind.__name__}"
        raise ExtensionError(f"{name} is not a backend: it must be a {kind}")
    return value


BACKENDS: Registry[BackendKind] = Registry(
    "backend",
    "rove.backends",
    _checked_backend,
    {
        "sim": "orchestrator.backends.sim.kind:SIM",
        "netns": "orchestrator.backends.netns.kind:NETNS",
        "ssh": "orchestrator.backends.ssh.kind:SSH",
        "core": "orchestrator.backends.core.kind:CORE",
    },
)


def traits_of(name: Any) -> Traits:
    """Returns the traits of a run's backend; the defaults if it is unknown here, as in others' runs."""
    try:
        return BACKENDS[name].traits if name in BACKENDS else Traits()
    except ExtensionError:
        return Traits()


def choosable() -> list[str]:
    """Returns the backends that ``auto`` may choose: real time before virtual time."""
    names = [name for name in BACKENDS if BACKENDS[name].lacking is not None]
    return sorted(names, key=lambda name: BACKENDS[name].traits.virtual_time)
