"""Defines the key ``wires`` of a topology: cables between nodes, beside the radio that all share.

    wires:
      - {between: [b1, b2, b3], rate: 100 Mb/s, latency: 1 ms}

Each two of the listed nodes have a cable of their own. Two nodes with a cable use it and never the radio
between them; everybody else is reached by radio.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.contacts.plan import FOREVER, Contact, ContactLink
from orchestrator.spec.base import NAME_PATTERN, Section, check_name
from orchestrator.spec.problems import Finding, Place, did_you_mean, shown, unusable
from orchestrator.spec.units import BIT_RATE, DURATION

MOST_WIRES = 10_000
_MBPS = 1e6


def _read_nodes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise unusable(f"{shown(value)} is not a list of two nodes or more", "for example between: [b1, b2]")
    return tuple(check_name(each) for each in value)


WiredNodes = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_nodes),
    WithJsonSchema(
        {"type": "array", "minItems": 2, "items": {"type": "string", "pattern": f"^{NAME_PATTERN}$"}}
    ),
]


class Wire(Section):
    """A cable between two nodes; of more nodes, one between each two of them."""

    other_names: ClassVar[dict[str, str]] = {"bandwidth": "rate", "delay": "latency", "among": "between"}

    between: WiredNodes = Field(description="Each two of these have a cable", examples=[["b1", "b2"]])
    rate: Annotated[float, BIT_RATE.within(ge=1000, le=10e9)] = Field(
        default=100e6, description="Of each direction", examples=["100 Mb/s"]
    )
    latency: Annotated[float, DURATION.within(le=10)] = Field(default=0.001, examples=["1 ms"])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.between, 2))

    def summary(self) -> str:
        return f"{', '.join(self.between)} ({self.rate / _MBPS:g} Mb/s, latency {self.latency * 1e3:g} ms)"


def wire_links(wires: Iterable[Wire]) -> tuple[ContactLink, ...]:
    """Returns the cables as links that are always up."""
    always = (Contact(0.0, FOREVER),)
    return tuple(
        ContactLink(one, other, always, 0.0, FOREVER, wire.rate, wire.latency)
        for wire in wires
        for one, other in wire.pairs
    )


def wire_findings(wires: Sequence[Wire], nodes: Sequence[str]) -> list[Finding]:
    """Returns what is wrong with wires between these nodes, at places within ``wires``."""
    count = sum(len(wire.between) * (len(wire.between) - 1) // 2 for wire in wires)
    if count > MOST_WIRES:
        text = f"{count} cables: at most {MOST_WIRES} are supported"
        return [Finding((), text, "list fewer nodes: each two of one entry have a cable")]
    known, findings = frozenset(nodes), list[Finding]()
    seen: dict[frozenset[str], int] = {}
    for index, wire in enumerate(wires):
        at: Place = (index, "between")
        twice = {node for node in wire.between if wire.between.count(node) > 1}
        findings += [Finding(at, f"{node} is listed twice") for node in sorted(twice)]
        for end, node in enumerate(wire.between):
            if node not in known:
                text = f"there is no node {shown(node)}"
                findings.append(Finding((*at, end), text, did_you_mean(node, nodes)))
        pairs = {frozenset(pair) for pair in wire.pairs if pair[0] != pair[1]}
        if taken := sorted(tuple(sorted(pair)) for pair in pairs & seen.keys()):
            one, other = taken[0]
            where = seen[frozenset(taken[0])]
            findings.append(Finding(at, f"{one} and {other} have a cable already, the one at wires[{where}]"))
        seen |= dict.fromkeys(pairs, index)
    return findings
