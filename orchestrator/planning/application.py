"""What an application is to the orchestrator: ``Application``, and ``AppPlan`` for one application of a run.

A new application is a folder ``orchestrator/apps/<name>`` with a subclass of each, and one line in
``orchestrator.spec.application.APPLICATIONS``. Everything has a default but what no application can do
without. Applications are given the scenario of an experiment, and never see each other.

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
from node_agent.telemetry.segments import Completeness
from orchestrator.answers import Answer
from orchestrator.errors import BadInput
from orchestrator.planning.parts import Part
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.application import APPLICATIONS, AppEntry, AppKind
from orchestrator.spec.problems import Finding

if TYPE_CHECKING:
    from rich.console import RenderableType


class End(NamedTuple):
    """Where traffic begins or ends: what it is called there, and the node."""

    name: str
    node: str


@dataclass(frozen=True)
class Requirement:
    """Something that an application needs of this machine. ``lacking`` is empty where all is well.

    What is not ``required`` has a lesser substitute. ``advice``: how to get it.
    """

    name: str
    found: str
    lacking: str = ""
    required: bool = True
    advice: str = ""


class Examiner:
    """Reads the records of one application of a run, after they were checked one by one.

    ``scopes``: what the parts of the application on each node can tell of.
    """

    def __init__(self, scopes: AppScopes) -> None:
        self.scopes = scopes

    def take(self, node: str, record: Any) -> None:
        """A record of the application that its node can have written."""

    def never_emitted(self, completeness: Mapping[str, Completeness]) -> dict[str, int]:
        """By node, how much it delivered that nobody says to have emitted. Called after the last record."""
        return {}


class AppPlan(ABC):
    """One application of one run: which node does what. A frozen value, made once for each run."""

    name: str
    kind: ClassVar[str]
    title: ClassVar[str] = "Plan"
    """What `rove plan` calls what ``shown`` shows."""

    @abstractmethod
    def nodes(self) -> tuple[str, ...]:
        """The nodes that have a part in it."""

    @abstractmethod
    def agent_config(self, node: str) -> Struct:
        """What the node's agent is told about it: the config struct of the application in ``node_agent``."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What the manifest keeps of it, besides its kind."""

    def seeds(self) -> dict[str, Any]:
        """Seeds of its own, for the manifest."""
        return {}

    def pinned(self, directory: Path) -> Self:
        """With copies in the run's directory of what must not change while it runs. Raises BadInput."""
        return self

    def needs(self, node: str) -> Iterator[Part]:
        """What has to be installed on the node, besides what every agent needs."""
        yield from ()

    def shipped(self, node: str, place: str) -> tuple[Self, dict[str, Path]]:
        """For a node of another machine: the plan with paths as they are there, and the files to send.

        ``place``: the run's folder on the node, absolute. The files are named relative to it.
        """
        return self, {}

    def preload(self, folder: Path) -> list[str]:
        """Entries ``module:function:file`` for the fork server: what agents on this machine can share."""
        return []

    def traffic(self) -> tuple[tuple[End, End], ...]:
        """From where to where its traffic goes. The first nodes have something to open when a run begins."""
        return ()

    def cut_off(self, islands: Mapping[str, int], why: str) -> list[Finding]:
        """What can never work where no node moves; ``islands``: nodes of one number can reach each other."""
        return []

    def node_of(self, part: Mapping[str, Any]) -> str | Finding:
        """The node that a fault's target means, or what is wrong with it, relative to the target."""
        raise NotImplementedError("applications without a target have no parts that faults can name")

    def harmed_by_crash(self, node: str) -> Finding | None:
        """Why the agent of this node must not be killed."""
        return None

    def summary(self) -> list[tuple[str, str]]:
        """Rows for `rove plan`: a title and a line."""
        return []

    def shown(self) -> "list[RenderableType]":
        """What `rove plan` prints of it."""
        return []

    def document(self) -> dict[str, Any]:
        """What `rove plan --json` says of it."""
        return {}

    def graph(self, form: str) -> str:
        """A drawing: ``svg`` or ``mmd`` (Mermaid)."""
        raise BadInput(f"{self.name} has no graph to draw")


class Application(AppKind, ABC):
    """One kind of application. There is one instance of each, in the registry."""

    @abstractmethod
    def plan(self, entry: AppEntry) -> AppPlan:
        """Check the application and plan it. Raises Unusable with everything that is wrong in the file."""

    @abstractmethod
    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        """The plan that ``AppPlan.record`` wrote into a manifest; None if it cannot be read."""

    @abstractmethod
    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        """For the records of a run, by what its manifest keeps; None if that cannot be read."""

    def own_findings(self, entry: AppEntry) -> list[Finding]:
        """What is wrong with a section by itself: said even if the rest of the file cannot be planned."""
        return []

    def findings(self, entries: Sequence[AppEntry]) -> list[Finding]:
        """What is wrong with the applications of this kind in one experiment, taken together."""
        return []

    def unused_findings(self, entry: AppEntry) -> list[Finding]:
        """Settings that have no effect in any cell of a sweep."""
        return []

    def require(self, plans: Sequence[AppPlan]) -> None:
        """Raises BadInput if this machine lacks what they need to run."""

    def parts(self) -> tuple[Part, ...]:
        """Everything that ``AppPlan.needs`` may name, of Rove's own."""
        return ()

    def requirements(self) -> list[Requirement]:
        """What `rove doctor` looks for."""
        return []

    def bundled(self, entry: AppEntry, document: dict[str, Any]) -> dict[str, bytes]:
        """Files that the section names, but not by a ``FileReference``: by path in the run's directory.

        ``document``, the resolved section, is changed to name them there.
        """
        return {}

    def explain(self, directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
        """Why it did what it did at a moment."""
        raise BadInput(f"{app} is an application that explains nothing")

    def replay(self, directory: RunDirectory, app: str, policy: str, threshold: str | None) -> Answer:
        """What it would have done under another policy."""
        raise BadInput(f"{app} is an application that decides nothing: there is nothing to replay")


def application(kind: str) -> Application:
    """Raises BadInput for an unknown kind: manifests of others name kinds, and never a file to be run."""
    if kind not in APPLICATIONS:
        raise BadInput(APPLICATIONS.unknown(kind))
    found = APPLICATIONS[kind]
    if not isinstance(found, Application):
        raise ExtensionError(
            f"the application {kind!r} is no Application (orchestrator.planning.application)"
        )
    return found
