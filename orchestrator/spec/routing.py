"""Who finds the ways through the network: the protocols that an experiment's ``routing`` section may name."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, model_validator

from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, in_words, listed, shown, unusable
from orchestrator.spec.units import DURATION

_SHORTEST_S = 0.1
_LONGEST_S = 3600.0
"""The largest validity time that OLSR can write down is a little more."""

Interval = Annotated[float, DURATION.within(ge=_SHORTEST_S, le=_LONGEST_S)]
Quorum = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]

TrueMetric = Literal["etx", "hops"]
Quality = Literal["etx_ff", "etx_float", "hops"]
Detection = Literal["hello", "feedback"]


class Protocol(Section):
    """``metric`` of each protocol is what the agents' costs count."""

    backends: ClassVar[tuple[str, ...]] = ("sim", "netns", "ssh", "core")
    """Where it can run."""

    protocol: str
    metric: str

    def summary(self) -> str:
        """In one line, for people: all times, and what else is not as it is by default."""
        times = {key: value for key, value in self if isinstance(value, float) and key != "quorum"}
        fields = type(self).model_fields
        others = {
            key: value
            for key, value in self
            if key not in ("protocol", "metric", *times) and value != fields[key].default
        }
        return ", ".join(
            [f"{self.protocol} ({self.metric})"]
            + [f"{key.replace('_', ' ')} {value:g} s" for key, value in times.items()]
            + [f"{key} {in_words(value)}" for key, value in others.items()]
        )


class Ours(Protocol):
    """A daemon of our own, which can seal what it sends."""

    authentication: bool = Field(
        default=False,
        strict=True,
        description="Nodes seal their routing messages with a key of the run, and refuse others",
    )


class Proactive(Protocol):
    """Knows a way to everybody before anybody asks."""

    quorum: Quorum = Field(
        default=0.9,
        description="A node is ready when it knows a way to this share of the nodes that it could reach",
    )

    def findings(self) -> list[Finding]:
        """What is wrong with the parameters taken together."""
        return []

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if findings := self.findings():
            raise Unusable(*findings)
        return self


class LinkStateProtocol(Proactive):
    """HELLOs among neighbours, topology messages to everybody; both hold for a validity time."""

    hello: Interval = 1.0
    hello_validity: Interval = 4.0
    tc: Interval = 1.0
    tc_validity: Interval = 15.0

    def findings(self) -> list[Finding]:
        return _short_lived("hello", self.hello, self.hello_validity) + _short_lived(
            "tc", self.tc, self.tc_validity
        )


def _short_lived(key: str, interval: float, validity: float) -> list[Finding]:
    if validity > interval:
        return []
    text = f"{validity:g} s is over before the next message comes: one is sent every {interval:g} s ({key})"
    return [Finding((f"{key}_validity",), text, f"for example {4 * interval:g} s")]


class OlsrLike(LinkStateProtocol):
    """OLSR in olsrd's dialect."""

    metric: Literal["etx", "hops", "log_delivery"] = "etx"
    quality: Quality | None = Field(
        default=None,
        description="How the daemons rate links; if not given, hops where the metric is hops, else etx_ff",
    )

    @property
    def link_quality(self) -> Quality:
        return self.quality or ("hops" if self.metric == "hops" else "etx_ff")

    def findings(self) -> list[Finding]:
        findings = super().findings()
        if self.link_quality == "hops" and self.metric != "hops":
            text = f"daemons that count hops do not measure links, which {self.metric} needs"
            findings.append(Finding(("quality",), text, "use metric: hops, or quality: etx_ff"))
        return findings


class Olsr(OlsrLike, Ours):
    """Our own daemon (``python -m node_agent.olsr``)."""

    protocol: Literal["olsr"] = "olsr"
    fisheye: bool = Field(
        default=True, strict=True, description="Distant nodes hear only every eighth TC, and news at once"
    )


class Olsrd(OlsrLike):
    """The olsrd of olsr.org, where it is installed."""

    backends = ("netns", "ssh", "core")

    protocol: Literal["olsrd"]


class Olsrd2(LinkStateProtocol):
    """OONF's olsrd2 (OLSRv2), where it is installed; its own costs are airtimes."""

    backends = ("netns", "ssh", "core")

    protocol: Literal["olsrd2"]
    metric: Literal["airtime", "hops"] = "airtime"


class Babel(Proactive):
    """babeld, where it is installed; a distance vector: each node knows its own costs only."""

    backends = ("netns", "ssh", "core")

    protocol: Literal["babel"]
    metric: Literal["etx", "log_delivery"] = "etx"
    hello: Interval = 1.0
    update: Interval = 4.0


class Aodv(Ours):
    """Our own AODV (RFC 3561): ways are sought when they are needed, so there is no quorum to wait for."""

    quorum: ClassVar[float] = 0.0

    protocol: Literal["aodv"]
    metric: Literal["hops"] = "hops"
    hello: Interval = 1.0
    active_route: Interval = Field(default=3.0, description="How long an unused route is good for")
    detection: Detection | None = Field(
        default=None,
        description="A broken link shows by missing HELLOs, or (only in virtual time) the link layer tells; "
        "if not given, feedback where it is to be had, else hello",
    )

    def detection_on(self, backend: str) -> Detection:
        """The medium of virtual time tells which frames it gave up, a kernel does not."""
        return self.detection or ("feedback" if backend == "sim" else "hello")


class GroundTruth(Protocol):
    """No protocol at all: routes and costs are those of the true links, at once and without a message."""

    backends = ("sim", "netns")
    quorum: ClassVar[float] = 0.0

    protocol: Literal["ground_truth"]
    metric: TrueMetric = "etx"


_PROTOCOLS = ("olsr", "olsrd", "olsrd2", "babel", "aodv", "ground_truth")
_SEALING = ("olsr", "aodv")
_OF_OTHERS = tuple(each for each in _PROTOCOLS if each not in _SEALING)
DEFAULT_PROTOCOL = "olsr"

AnyRouting = Olsr | Olsrd | Olsrd2 | Babel | Aodv | GroundTruth


def _read_routing(value: Any) -> Any:
    if isinstance(value, str):
        if value not in _PROTOCOLS:
            hint = did_you_mean(value, _PROTOCOLS)
            raise unusable(f"{shown(value)} is not known here; expected {listed(_PROTOCOLS)}", hint)
        return {"protocol": value}
    if not isinstance(value, dict):
        return value
    named = {"protocol": DEFAULT_PROTOCOL, **value}
    if "authentication" in named and named["protocol"] in _OF_OTHERS:
        text = f"{named['protocol']} does not know the seals of Rove's own daemons"
        hint = f"use protocol: {listed(_SEALING)}, or leave authentication out"
        raise unusable(text, hint, ("authentication",))
    return named


def read_protocol(name: str) -> AnyRouting:
    """A protocol by its name, with its defaults. Raises Unusable."""
    return _BY_NAME.validate_python(_read_routing(name))


def _or_a_word(schema: dict[str, Any]) -> None:
    """A protocol's name stands for all its defaults; and a mapping need not name the default protocol."""
    union = {key: schema.pop(key) for key in ("discriminator", "oneOf") if key in schema}
    schema["anyOf"] = [{"enum": list(_PROTOCOLS)}, *union["oneOf"]]


Routing = Annotated[
    AnyRouting,
    Field(discriminator="protocol", json_schema_extra=_or_a_word),
    BeforeValidator(_read_routing),
]
_BY_NAME: TypeAdapter[AnyRouting] = TypeAdapter(Routing)
