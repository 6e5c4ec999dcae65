"""Defines the key ``links`` of a topology: emulated links between real nodes on a LAN, and their quality."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from orchestrator.spec.base import Section
from orchestrator.spec.hosts import RealNode
from orchestrator.spec.node_pairs import Ends
from orchestrator.spec.problems import Finding, Place, did_you_mean, shown, unusable
from orchestrator.spec.units import BIT_RATE, DURATION, Quantity

LOSS = Quantity("a loss", {"%": 0.01}, ("10%", "0.1"), "parts of 1", 0, 1)
_NONE = "none"


class Quality(NamedTuple):
    """The quality of one direction of a link: ``rate`` in bit/s, ``delay`` in seconds."""

    loss: float = 0.0
    rate: float | None = None
    delay: float = 0.0


class LinkQuality(Section):
    """The quality of a link as the file states it. Values that are not given stay as the LAN has them."""

    loss: Annotated[float, LOSS] = Field(default=0.0, description="Of frames of any kind; 100%: no link")
    rate: Annotated[float, BIT_RATE.within(ge=1000)] | None = None
    delay: Annotated[float, DURATION.within(le=60)] = Field(default=0.0, description="Needs netem")

    @property
    def quality(self) -> Quality:
        return Quality(self.loss, self.rate, self.delay)

    def summary(self) -> str:
        if self.loss == 1:
            return "none"
        parts = [f"loss {100 * self.loss:g}%"] if self.loss else []
        parts += [f"{self.rate / 1e6:g} Mb/s"] if self.rate is not None else []
        parts += [f"{1000 * self.delay:g} ms"] if self.delay else []
        return ", ".join(parts) or "as the LAN"


class Link(LinkQuality):
    between: Ends = Field(examples=["[n01, n02]"])
    one_way: bool = Field(default=False, strict=True, description="Only from the first to the second")

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        first, second = self.between
        return ((first, second),) if self.one_way else ((first, second), (second, first))


def _read_others(value: Any) -> Any:
    if isinstance(value, str) and value != _NONE:
        raise unusable(f"{shown(value)} is not known here", "none, or what they are like: {loss: 5%}")
    return LinkQuality(loss=1.0) if value == _NONE else value


class Links(Section):
    """The listed pairs of nodes, and the quality between all others."""

    pairs: tuple[Link, ...] = Field(default=(), examples=["[{between: [n01, n02], loss: 10%}]"])
    others: Annotated[
        LinkQuality, BeforeValidator(_read_others, json_schema_input_type=Literal["none"] | LinkQuality)
    ] = Field(
        default=LinkQuality(), description="All that are not listed; none: only those listed hear each other"
    )

    def summary(self) -> str:
        listed = [
            f"{link.between[0]} {'→' if link.one_way else '–'} {link.between[1]} ({link.summary()})"
            for link in self.pairs
        ]
        return "; ".join([*listed, f"all others: {self.others.summary()}"])

    def quality(self, sender: str, receiver: str) -> Quality:
        for link in self.pairs:
            if (sender, receiver) in link.directions:
                return link.quality
        return self.others.quality


def link_findings(links: Links, known: Sequence[str], real: Mapping[str, RealNode]) -> list[Finding]:
    if not real:  # a problem of ``hosts`` is reported there, not here
        text = "links are emulated between real nodes only, and no node is one"
        return [Finding(("hosts",), text, "write it like n01: {host: 192.168.1.21} (docs/nodes.md)")]
    findings: list[Finding] = []
    seen: dict[tuple[str, str], int] = {}
    for index, link in enumerate(links.pairs):
        at: Place = ("links", "pairs", index, "between")
        if link.between[0] == link.between[1]:
            findings.append(Finding(at, f"{link.between[0]} is always its own neighbour"))
            continue
        for end, node in enumerate(link.between):
            if node not in known:
                text = f"there is no node {shown(node)}"
                findings.append(Finding((*at, end), text, did_you_mean(node, known)))
            elif node not in real:
                text = f"{node} is not in hosts: links are emulated between real nodes only"
                findings.append(Finding((*at, end), text))
        taken = [seen[direction] for direction in link.directions if direction in seen]
        if taken:
            findings.append(Finding(at, f"these two have a link already, the one at pairs[{taken[0]}]"))
        seen |= dict.fromkeys(link.directions, index)
    for node, facts in real.items():
        if not facts.host.profile.has_root:
            text = f"{node} has the profile termux: links cannot be emulated where nobody is root"
            findings.append(Finding(("links",), text, "leave that node out, or use another machine"))
    return findings
