"""What the sections of several protocols share: times of messages, ways to rate links, seals."""

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from node_agent.linkstate.registry import LINK_STATE_READERS
from node_agent.olsr.config import Quality
from node_agent.olsr.quality import settling_s
from orchestrator.spec.problems import Finding, did_you_mean, listed, shown, unusable
from orchestrator.spec.routing import Interval, Proactive, RoutingSection

HELLOS_MISSED = 3
"""After so many a link is taken for lost, where no validity time is given."""

OLSRD_READER = "olsrd_jsoninfo"
QUALITY: Any = Field(
    default=None,
    description="How the daemons rate links; if not given, hops where the metric is hops, else etx_ff",
)


class MetricOf:
    """Annotation for the metric of a protocol: one that the agents' link-state ``reader`` can tell."""

    def __init__(self, reader: str) -> None:
        self._known = LINK_STATE_READERS[reader].metrics

    def read(self, value: Any) -> str:
        if value in self._known:
            return str(value)
        text = f"{shown(value)} is not known here; expected {listed(self._known)}"
        raise unusable(text, did_you_mean(value, self._known))

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"enum": list(self._known), "type": "string"}


class Ours(RoutingSection):
    """A daemon of our own, which can seal what it sends."""

    authentication: bool = Field(
        default=False,
        strict=True,
        description="Nodes seal their routing messages with a key of the run, and refuse others",
    )

    @property
    def authenticates(self) -> bool:
        return self.authentication


class LinkStateProtocol(Proactive):
    """HELLOs among neighbours, topology messages to everybody; both hold for a validity time."""

    hello: Interval = 1.0
    hello_validity: Interval = 4.0
    tc: Interval = 1.0
    tc_validity: Interval = 15.0

    def notices_after(self, link_feedback: bool) -> float:
        return self.hello_validity

    def settles_after(self) -> float:
        """A HELLO in each direction, and a TC that tells others."""
        return 2 * self.hello + self.tc

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

    metric: Annotated[str, MetricOf(OLSRD_READER)] = "etx"
    quality: Quality | None = QUALITY

    @property
    def link_quality(self) -> Quality:
        return self.quality or ("hops" if self.metric == "hops" else "etx_ff")

    def settles_after(self) -> float:
        return super().settles_after() + settling_s(self.link_quality, self.hello)

    def findings(self) -> list[Finding]:
        findings = super().findings()
        if self.link_quality == "hops" and self.metric != "hops":
            text = f"daemons that count hops do not measure links, which {self.metric} needs"
            findings.append(Finding(("quality",), text, "use metric: hops, or quality: etx_ff"))
        return findings
