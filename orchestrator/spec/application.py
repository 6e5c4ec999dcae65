"""Applications as experiment files know them: one section for each, and the registry of their kinds.

The registry is the one list of applications. An application is registered by the key of its section:
``query``, ``flows``. What else belongs to one is in ``orchestrator.planning.application``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from node_agent.extensions import ExtensionError, Registry
from orchestrator.errors import BadInput
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Place
from orchestrator.spec.scenario import Scenario

TOP: Place = ()
APPS = "apps"
"""The key of an experiment file under which applications have names."""


class AppSection(Section):
    """What an experiment file says of one application: its own key, and what goes with that."""


class AppKind:
    """What the language of the files needs to know of an application."""

    section: ClassVar[type[AppSection]]
    target: ClassVar[type[Section] | None] = None
    """What a fault can name of it besides a node, such as an operator's replica. All keys have defaults."""
    target_in_words: ClassVar[str] = ""
    fixed: ClassVar[Mapping[str, str]] = {}
    """Paths in the section that a sweep cannot vary, and what to do instead."""


@dataclass(frozen=True)
class AppEntry:
    """One application of an experiment, and everything that its checks and its plan may look at."""

    name: str
    kind: str
    section: AppSection
    scenario: Scenario
    prefix: Place = TOP
    """Where its section is in the file."""
    varied: tuple[str, ...] = field(default=(), compare=False)
    """What a sweep varies, by paths in the section."""

    def at(self, *place: str | int) -> Place:
        """A place in the file, from one in the section."""
        return (*self.prefix, *place)


def _checked(name: str, value: object) -> AppKind:
    if not isinstance(value, AppKind) or not isinstance(getattr(value, "section", None), type):
        raise ExtensionError(
            f"the application {name!r} is no Application (orchestrator.planning.application)"
        )
    if name not in value.section.model_fields:
        raise ExtensionError(f"the application {name!r} has no key {name} in its section")
    return value


APPLICATIONS: Registry[AppKind] = Registry(
    "application",
    "rove.orchestrator_applications",
    _checked,
    {
        "query": "orchestrator.apps.dataflow.application:DATAFLOW",
        "flows": "orchestrator.apps.flows.application:FLOWS",
    },
)


def sections() -> dict[str, type[AppSection]]:
    """By kind. Raises BadInput if one cannot be used, or two use one key at the top level of a file."""
    try:
        found = {kind: APPLICATIONS[kind].section for kind in APPLICATIONS}
    except ExtensionError as error:
        raise BadInput(str(error)) from error
    owner: dict[str, str] = {APPS: "Rove itself", **dict.fromkeys(Scenario.model_fields, "Rove itself")}
    for kind, section in found.items():
        for key in section.model_fields:
            if key in owner:
                raise BadInput(
                    f"the application {kind!r} uses the key {key}, which is taken by {owner[key]}: rename it"
                )
            owner[key] = f"the application {kind!r}"
    return found


def gathered(document: Mapping[str, Any], kinds: Mapping[str, type[AppSection]]) -> dict[str, Any]:
    """The document with all applications under ``apps``: those whose keys are at the top level as well."""
    named = document.get(APPS, {})
    if not isinstance(named, dict):
        return dict(document)
    rest = {key: value for key, value in document.items() if key != APPS}
    own: dict[str, Any] = {}
    for kind, section in kinds.items():
        keys = [key for key in section.model_fields if key in rest]
        if keys and kind not in named:
            own[kind] = {key: rest.pop(key) for key in keys}
    if not own and APPS not in document:
        own[next(iter(kinds))] = {}  # what an experiment without any application lacks is that of the first
    return {**rest, APPS: {**own, **named}}


def place_in(document: Any, place: Place, kinds: Mapping[str, type[AppSection]]) -> Place:
    """Where a place in the gathered document is in ``document``."""
    if len(place) < 2 or place[0] != APPS or place[1] not in kinds:
        return place
    named = document.get(APPS) if isinstance(document, dict) else None
    return place if isinstance(named, dict) and place[1] in named else place[2:]
