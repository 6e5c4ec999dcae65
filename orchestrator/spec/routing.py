"""Defines the section ``routing`` of an experiment: the registry of protocols, and what their sections share.

A protocol is one file of ``orchestrator.services``: its section with the parameters, and its service, which
names that section. Other packages add theirs by entry points of the group ``rove.routing_services``.
"""

from typing import Annotated, Any, ClassVar, Protocol, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from node_agent.extensions import ExtensionError, Registry
from node_agent.linkstate.registry import LINK_STATE_READERS
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, Unusable, in_words, listed, unusable
from orchestrator.spec.registered import Registered, RegisteredName
from orchestrator.spec.translate import findings_of
from orchestrator.spec.units import DURATION

_SHORTEST_S = 0.1
_LONGEST_S = 3600.0
"""A little less than the largest validity time that OLSR can express."""

Interval = Annotated[float, DURATION.within(ge=_SHORTEST_S, le=_LONGEST_S)]
Quorum = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]
_SEALED = "authentication"


OWN_READER = "own"
ReaderField = Annotated[
    str,
    RegisteredName(LINK_STATE_READERS, words=(OWN_READER,)),
    Field(
        description="Where agents read costs: own (as the protocol tells them), another reader, or "
        "my_reader.py:Reader"
    ),
]


class RoutingSection(Section):
    """The parameters of a protocol. ``metric`` names what the agents' costs count."""

    protocol: str
    metric: str
    reader: ReaderField = OWN_READER

    @property
    def ready_share(self) -> float:
        """Returns the share of reachable nodes that a node needs routes to before it counts as ready."""
        return 0.0

    @property
    def authenticates(self) -> bool:
        """Says whether nodes seal their routing messages with a key of the run."""
        return False

    def notices_after(self, link_feedback: bool) -> float:
        """Returns the seconds until it notices that a link is gone. ``link_feedback``: the link layer reports
        it.
        """
        return 0.0

    def settles_after(self) -> float:
        """Returns the seconds after which the costs of a link that has just appeared and does not change are
        near their final value.
        """
        return 0.0

    def findings(self) -> list[Finding]:
        """Returns what is wrong with the combination of parameters."""
        return []

    def summary(self) -> str:
        """Describes the protocol in one line: all times, and other values that are not the default."""
        times = {key: value for key, value in self if isinstance(value, float) and key != "quorum"}
        fields = type(self).model_fields
        others = {
            key: value
            for key, value in self
            if key not in ("protocol", "metric", *times) and value != fields[key].default
        }
        return ", ".join(
            [f"{self.protocol.rpartition('/')[2]} ({self.metric})"]
            + [f"{key.replace('_', ' ')} {value:g} s" for key, value in times.items()]
            + [f"{key} {in_words(value)}" for key, value in others.items()]
        )

    @model_validator(mode="before")
    @classmethod
    def _seals(cls, value: Any) -> Any:
        if not isinstance(value, dict) or _SEALED not in value or _SEALED in cls.model_fields:
            return value
        sealing = [
            name for name in ROUTING_SERVICES if _SEALED in ROUTING_SERVICES[name].section.model_fields
        ]
        text = f"{value.get('protocol')} does not know the seals of Rove's own daemons"
        raise unusable(text, f"use protocol: {listed(sealing)}, or leave authentication out", (_SEALED,))

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if findings := self.findings():
            raise Unusable(*findings)
        return self


class Proactive(RoutingSection):
    """A proactive protocol: it knows routes to all nodes before they are needed."""

    quorum: Quorum = Field(
        default=0.9,
        description="A node is ready when it knows a way to this share of the nodes that it could reach",
    )

    @property
    def ready_share(self) -> float:
        return self.quorum


class RoutingKind(Protocol):
    """The facts about a routing service that the file language needs."""

    section: ClassVar[type[RoutingSection]]


def _checked_service(name: str, value: object) -> type[RoutingKind]:
    section = getattr(value, "section", None)
    if (
        not isinstance(value, type)
        or not isinstance(section, type)
        or not issubclass(section, RoutingSection)
    ):
        base = "orchestrator.services.base.RoutingService"
        raise ExtensionError(f"{name} is not a routing service: derive a class from {base}, with a section")
    return value


ROUTING_SERVICES: Registry[type[RoutingKind]] = Registry(
    "routing protocol",
    "rove.routing_services",
    _checked_service,
    {
        "olsr": "orchestrator.services.olsr:OlsrService",
        "olsrd": "orchestrator.services.olsrd:OlsrdService",
        "olsrd2": "orchestrator.services.olsrd2:Olsrd2Service",
        "babel": "orchestrator.services.babeld:BabeldService",
        "aodv": "orchestrator.services.aodv:AodvService",
        "none": "orchestrator.services.none:NoRoutingService",
        "ground_truth": "orchestrator.services.ground_truth:GroundTruthService",
    },
)
DEFAULT_PROTOCOL = "olsr"

RoutingField = Annotated[
    RoutingSection,
    Registered(
        ROUTING_SERVICES, "protocol", section=lambda kind: kind.section, default=DEFAULT_PROTOCOL, word=True
    ),
]
_BY_NAME: TypeAdapter[RoutingSection] = TypeAdapter(RoutingField)


def read_protocol(name: str = DEFAULT_PROTOCOL) -> RoutingSection:
    """Returns the section of the named protocol with its defaults. Raises Unusable."""
    try:
        return _BY_NAME.validate_python(name)
    except ValidationError as error:
        raise Unusable(*findings_of(error, RoutingSection, name)) from None
