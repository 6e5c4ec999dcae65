"""The protocol of applications: ``Application`` for a kind, ``AppPlan`` for one application of a run.

A new application is a folder ``orchestrator/apps/<name>`` with a subclass of each, and one line in
``orchestrator.spec.application.APPLICATIONS``. Every method has a default, except those that each application
must define. An application sees the scenario of its experiment and never another application.

    class Echo(Application):
        section = EchoSection

        def plan(self, entry: AppEntry) -> AppPlan:
            return EchoPlan(entry.name, ...)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from msgspec import Struct

from node_agent.extensions import ExtensionError
from node_agent.telemetry.belief import AppScopes
from node_agent.telemetry.metrics import Sample
from node_agent.telemetry.segments import Completeness
from orchestrator.answers import Answer
from orchestrator.errors import BadInput
from orchestrator.planning.parts import Part
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import AppView, Seconds
from orchestrator.spec.application import APPLICATIONS, AppEntry, AppKind
from orchestrator.spec.problems import Finding

if TYPE_CHECKING:
    from rich.console import RenderableType


class End(NamedTuple):
    """One end of traffic: its name in the application, and the node."""

    name: str
    node: str


@dataclass(frozen=True)
class Requirement:
    """Something that an application needs on this machine. ``lacking`` is empty if it is there.

    If it is not ``required``, a lesser substitute is used. ``advice``: how to get it.
    """

    name: str
    found: str
    lacking: str = ""
    required: bool = True
    advice: str = ""


class Examiner:
    """Reads the records of one application of a run, after they were checked one by one.

    ``scopes``: by node, what the application's parts on it can report about.
    """

    def __init__(self, scopes: AppScopes) -> None:
        self.scopes = scopes

    def take(self, node: str, record: Any) -> None:
        """Takes one record of the application that its node can have written."""

    def never_emitted(self, completeness: Mapping[str, Completeness]) -> dict[str, int]:
        """Counts, by node, what it delivered although no node recorded it as emitted. Called after the last
        record.
        """
        return {}


class InUse(NamedTuple):
    """A target that only the run knows: the one of ``parts`` (nodes by name) that data flows through."""

    app: str
    what: str
    parts: Mapping[str, str]


class AppPlan(ABC):
    """One application of one run: which node does what. A frozen value, made once for each run."""

    name: str
    kind: ClassVar[str]
    title: ClassVar[str] = "Plan"
    """The title in `rove plan` of what ``shown`` returns."""

    @abstractmethod
    def nodes(self) -> tuple[str, ...]:
        """Returns the nodes that run a part of it."""

    @abstractmethod
    def agent_config(self, node: str) -> Struct:
        """Returns the application's config struct for the node's agent, as ``node_agent`` defines it."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Returns what the manifest stores of it, besides its kind."""

    def seeds(self) -> dict[str, Any]:
        """Returns its own seeds, for the manifest."""
        return {}

    def pinned(self, directory: Path) -> Self:
        """Returns the plan with copies, in the run's directory, of files that must not change.

        Raises BadInput.
        """
        return self

    def needs(self, node: str) -> Iterator[Part]:
        """Returns what has to be installed on the node, besides what every agent needs."""
        yield from ()

    def shipped(self, node: str, place: str) -> tuple[Self, dict[str, Path]]:
        """Returns the plan with the paths on another machine's node, and the files to send there.

        ``place``: the run's folder on the node, absolute. The files are named relative to it.
        """
        return self, {}

    def preload(self, folder: Path) -> list[str]:
        """Returns entries ``module:function:file`` for the fork server: what agents on this machine can
        share."""
        return []

    def picture_folders(self, node: str) -> tuple[str, ...]:
        """Returns the folders, in ``frames`` of the node's record, where it may leave pictures."""
        return ()

    def traffic(self) -> tuple[tuple[End, End], ...]:
        """Returns pairs of ends that its traffic goes between.

        The first nodes open their sources at the start.
        """
        return ()

    def cut_off(self, islands: Mapping[str, int], why: str) -> list[Finding]:
        """Returns what can never work if no node moves; nodes with the same number in ``islands`` are
        connected."""
        return []

    def node_of(self, part: Mapping[str, Any]) -> str | InUse | Finding:
        """Returns the node of a fault's target, or what is wrong with the target, at a place within it."""
        raise NotImplementedError("applications without a target have no parts that faults can name")

    def in_use(self, what: str, samples: Mapping[str, Sequence[Sample]]) -> str | None:
        """Returns the part that data flows through, for the target ``InUse.what``; None if there is none.
        ``samples``: what the agents of its nodes report at this moment, by node.
        """
        return None

    def harmed_by_crash(self, node: str) -> Finding | None:
        """Returns why the agent of this node must not be killed, if there is a reason."""
        return None

    def summary(self) -> list[tuple[str, str]]:
        """Returns rows for `rove plan`: a title and a line."""
        return []

    def shown(self) -> "list[RenderableType]":
        """Returns what `rove plan` prints about it."""
        return []

    def document(self) -> dict[str, Any]:
        """Returns what `rove plan --json` prints about it."""
        return {}

    def graph(self, form: str) -> str:
        """Returns a drawing as ``svg`` or ``mmd`` (Mermaid)."""
        raise BadInput(f"{self.name} has no graph to draw")


class Application(AppKind, ABC):
    """One kind of application. The registry holds one instance of each."""

    @abstractmethod
    def plan(self, entry: AppEntry) -> AppPlan:
        """Checks the application and plans it. Raises Unusable with everything that is wrong in the file."""

    def measured_plan(self, entry: AppEntry, directory: RunDirectory) -> AppPlan:
        """Plans it with what a run measured in place of what the file assumes. Raises BadInput."""
        raise BadInput(f"{entry.name} is an application whose plans assume nothing that runs measure")

    @abstractmethod
    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        """Reads the plan that ``AppPlan.record`` wrote into a manifest; None if it cannot be read."""

    @abstractmethod
    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        """Returns an examiner for the run's records, from its manifest; None if that cannot be read."""

    def own_findings(self, entry: AppEntry) -> list[Finding]:
        """Returns what is wrong with a section alone; reported even if the rest of the file cannot be
        planned."""
        return []

    def findings(self, entries: Sequence[AppEntry]) -> list[Finding]:
        """Returns what is wrong with all applications of this kind in one experiment together."""
        return []

    def unused_findings(self, entry: AppEntry) -> list[Finding]:
        """Returns settings that have no effect in any cell of a sweep."""
        return []

    def require(self, plans: Sequence[AppPlan]) -> None:
        """Raises BadInput if this machine lacks what these plans need to run."""

    def parts(self) -> tuple[Part, ...]:
        """Returns every part that ``AppPlan.needs`` may name, of Rove's own code."""
        return ()

    def requirements(self) -> list[Requirement]:
        """Returns what `rove doctor` looks for."""
        return []

    def bundled(self, entry: AppEntry, document: dict[str, Any]) -> dict[str, bytes]:
        """Returns files, by path in the run's directory, that the section names other than by FileReference.

        It changes ``document``, the resolved section, to name them there.
        """
        return {}

    def view(self, app: str, record: Mapping[str, Any], seconds: Seconds) -> AppView | None:
        """Returns what shows the application live, from its entry in the manifest; None if nothing does."""
        return None

    def explain(self, directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
        """Explains why it did what it did at a given time."""
        raise BadInput(f"{app} is an application that explains nothing")

    def explain_event(self, directory: RunDirectory, app: str, event: str) -> Answer:
        """Explains how something came about that it detected, by its name."""
        raise BadInput(f"{app} is an application that detects nothing: leave out --event")

    def changes(
        self, directory: RunDirectory, app: str, part: str | None, operator: str | None, most: int
    ) -> Answer:
        """Lists the newest ``most`` of its decisions that changed something."""
        raise BadInput(f"{app} is an application that decides nothing: there is nothing to list")

    def replay(self, directory: RunDirectory, app: str, policy: str, threshold: str | None) -> Answer:
        """Computes what it would have done under another policy."""
        raise BadInput(f"{app} is an application that decides nothing: there is nothing to replay")


def application(kind: str) -> Application:
    """Returns the application of a kind. Raises BadInput if it is unknown: a kind never names a file to run,
    as it may come from somebody else's manifest."""
    if kind not in APPLICATIONS:
        raise BadInput(APPLICATIONS.unknown(kind))
    found = APPLICATIONS[kind]
    if not isinstance(found, Application):
        raise ExtensionError(
            f"the application {kind!r} is no Application (orchestrator.planning.application)"
        )
    return found
