"""Defines how applications appear in experiment files: a section for each, and the registry of their kinds.

The registry is the only list of applications. An application is registered by the key of its section:
``query``, ``flows``. Its other parts are described by ``orchestrator.planning.application``.
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
    """The section of one application in an experiment file: its own key, and the keys that go with it."""


class AppKind:
    """The facts about an application that the file language needs."""

    section: ClassVar[type[AppSection]]
    target: ClassVar[type[Section] | None] = None
    """What a fault can target besides a node, such as an operator's replica. All keys have defaults."""
    target_in_words: ClassVar[str] = ""
    fixed: ClassVar[Mapping[str, str]] = {}
    """Paths in the section that a sweep cannot vary, and what to do instead."""


@dataclass(frozen=True)
class AppEntry:
    """One application of an experiment, with everything that its checks and its plan may use."""

    name: str
    kind: str
    section: AppSection
    scenario: Scenario
    prefix: Place = TOP
    """Where its section is in the file."""
    varied: tuple[str, ...] = field(default=(), compare=False)
    """What a sweep varies, by paths in the section."""

    def at(self, *place: str | int) -> Place:
        """Turns a place in the section into a place in the file."""
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
        "detect": "orchestrator.apps.comet.application:DETECT",
        "interest": "orchestrator.apps.mcep.application:INTEREST",
    },
)


def sections() -> dict[str, type[AppSection]]:
    """Returns sections by kind. Raises BadInput if one is unusable, or two use one top-level key."""
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
    """Returns the document with all applications under ``apps``, including those at the top level."""
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
        own[next(iter(kinds))] = {}  # without applications, the first kind is reported as missing
    return {**rest, APPS: {**own, **named}}


def place_in(document: Any, place: Place, kinds: Mapping[str, type[AppSection]]) -> Place:
    """Turns a place in the gathered document into the place in ``document``."""
    if len(place) < 2 or place[0] != APPS or place[1] not in kinds:
        return place
    named = document.get(APPS) if isinstance(document, dict) else None
    return place if isinstance(named, dict) and place[1] in named else place[2:]
