"""What an experiment file says of flows: who sends to whom, and what.

    flows:
      - {name: video, from: n01, to: n07, protocol: udp, rate: 256 kb/s, size: 512 B}
      - {pairs: 10, protocol: udp, rate: 40 kb/s}

A mapping from names to flows says the same, and its values can be varied by a sweep.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)

from node_agent.apps.flows.model import (
    LARGEST_CHUNK,
    LARGEST_DATAGRAM,
    MOST_FLOWS,
    MOST_PACKETS,
    SMALLEST,
)
from orchestrator.spec.application import AppSection
from orchestrator.spec.base import Name, Section
from orchestrator.spec.file_reference import FileReference, reader
from orchestrator.spec.problems import Finding, Unusable
from orchestrator.spec.units import BIT_RATE, DURATION, ROOM, SIZE, Duration, PositiveDuration

DATAGRAM_SIZE = 512
"""Bytes of a packet if nothing is said, as ns-3's OnOffApplication has it."""
CHUNK_SIZE = 8192
Period = Annotated[float, DURATION.within(ge=0.001)]
"""Of sending or pausing. Shorter ones would keep an agent busy with counting them."""


@dataclass(frozen=True)
class FlowTrace(FileReference):
    """A file of times and sizes."""


TraceField = Annotated[
    FlowTrace,
    PlainValidator(reader(FlowTrace, "web.csv")),
    PlainSerializer(lambda file: str(file.path)),
    WithJsonSchema({"type": "string", "description": "A file with the columns t,size, relative to this one"}),
]

# ``from`` is a word of Python's own: as a field it cannot be written into a class.
_ends: dict[str, Any] = {
    "from": (str | None, Field(default=None, description="The node that sends")),
}
_Ends = create_model("_Ends", __base__=Section, **_ends)


class FlowSection(_Ends):  # type: ignore[valid-type, misc]
    """One flow, or with ``pairs`` several of the same kind between nodes that are drawn."""

    other_names = {  # noqa: RUF012
        "source": "from",
        "src": "from",
        "sink": "to",
        "dst": "to",
        "bandwidth": "rate",
        "length": "size",
        "packet_size": "size",
        "time": "stop",
    }

    name: Name | None = Field(default=None, description="Its name in tables and reports")
    to: str | None = Field(default=None, description="The node that receives")
    pairs: Annotated[int, Field(strict=True, ge=1, le=MOST_FLOWS)] | None = Field(
        default=None, description="In place of from and to: as many pairs of nodes, drawn by the seed"
    )
    protocol: Literal["udp", "tcp"] = "udp"
    rate: Annotated[float, BIT_RATE.within(ge=1)] | None = Field(
        default=None, description="Of the packets' payload; a TCP flow without one goes as fast as it can"
    )
    size: Annotated[int, SIZE.within(ge=SMALLEST, le=LARGEST_CHUNK)] | None = Field(
        default=None,
        description=f"Payload of a packet, {DATAGRAM_SIZE} bytes if not given; "
        f"of TCP, what is written at once, {CHUNK_SIZE} bytes if not given",
    )
    on: Period | None = Field(default=None, description="It sends for so long, and then pauses")
    off: Period | None = Field(default=None, description="How long it pauses")
    distribution: Literal["constant", "exponential"] = Field(
        default="constant", description="Of on and off; exponential: these are the means"
    )
    start: Duration = Field(default=0.0, description="Since nodes begin to send, which is before the warm-up")
    stop: PositiveDuration | None = Field(
        default=None, description="As start; the end of the run if not given"
    )
    bytes: Annotated[int, ROOM.within(ge=1)] | None = Field(
        default=None, description="The flow ends after as many, such as the size of a file"
    )
    packets: Annotated[int, Field(strict=True, ge=1, le=MOST_PACKETS)] | None = Field(
        default=None, description="The flow ends after as many"
    )
    trace: TraceField | None = Field(
        default=None, description="In place of rate and size", examples=["web.csv"]
    )
    records: Literal["seconds", "packets"] = Field(
        default="seconds", description="packets: one record for each packet besides those of every second"
    )

    @property
    def source(self) -> str | None:
        node: str | None = getattr(self, "from")
        return node

    @property
    def packet_size(self) -> int:
        return self.size or (DATAGRAM_SIZE if self.protocol == "udp" else CHUNK_SIZE)

    @model_validator(mode="after")
    def _fits_together(self) -> "FlowSection":
        if findings := [*self._end_findings(), *self._pace_findings(), *self._time_findings()]:
            raise Unusable(*findings)
        return self

    def _end_findings(self) -> Iterator[Finding]:
        ends = {"from": self.source, "to": self.to}
        if self.pairs is not None:
            for key, node in ends.items():
                if node is not None:
                    yield Finding((key,), "the ends of pairs are drawn", "leave it out, or leave out pairs")
            return
        for key, node in ends.items():
            if node is None:
                yield Finding((key,), "missing", "name a node, or say pairs: 10 for pairs that are drawn")

    def _pace_findings(self) -> Iterator[Finding]:
        if self.trace is not None:
            for key in ("rate", "size", "on", "off"):
                if getattr(self, key) is not None:
                    yield Finding((key,), "the trace says when to send how much", f"leave out {key} or trace")
        elif self.protocol == "udp" and self.rate is None:
            hint = "write it like rate: 256 kb/s, or use protocol: tcp, which goes as fast as it can"
            yield Finding(("rate",), "missing: a UDP flow needs a rate, or a trace", hint)
        if self.protocol == "udp" and self.packet_size > LARGEST_DATAGRAM:
            text = (
                f"{self.packet_size} bytes do not fit into one frame: a datagram carries at most "
                f"{LARGEST_DATAGRAM} bytes over a radio with an MTU of 1500"
            )
            yield Finding(("size",), text)
        if self.bytes is not None and self.packets is not None:
            yield Finding(("packets",), "the flow ends after so many bytes already", "leave out one of both")

    def _time_findings(self) -> Iterator[Finding]:
        for key, other in (("on", "off"), ("off", "on")):
            if getattr(self, key) is not None and getattr(self, other) is None:
                yield Finding((other,), f"missing: a flow that has {key} has {other}, too")
        if self.distribution != "constant" and self.on is None:
            yield Finding(("distribution",), "has no effect without on and off")
        if self.stop is not None and self.stop <= self.start:
            yield Finding(("stop",), f"the flow would stop at {self.stop:g} s, before it starts")


def _form(value: Any) -> str:
    return "named" if isinstance(value, dict) else "listed"


FlowSections = Annotated[
    Annotated[dict[Name, FlowSection], Tag("named")] | Annotated[tuple[FlowSection, ...], Tag("listed")],
    Discriminator(_form),
]


class FlowsSection(AppSection):
    """Traffic between nodes."""

    flows: FlowSections = Field(
        examples=[[{"name": "video", "from": "n01", "to": "n07", "protocol": "udp", "rate": "256 kb/s"}]]
    )

    def items(self) -> Iterator[tuple[str | int, str | None, FlowSection]]:
        """Each with its place in the list or mapping, and the name that the file gives it."""
        if isinstance(self.flows, dict):
            yield from ((name, name, flow) for name, flow in self.flows.items())
        else:
            yield from ((index, flow.name, flow) for index, flow in enumerate(self.flows))

    @model_validator(mode="after")
    def _named_once(self) -> "FlowsSection":
        findings: list[Finding] = []
        if not self.flows:
            hint = "write it like flows: [{from: n01, to: n07, rate: 256 kb/s}]"
            findings.append(Finding(("flows",), "there is no flow", hint))
        seen: dict[str, str | int] = {}
        for place, name, flow in self.items():
            if isinstance(place, str) and flow.name is not None:
                text = f"the flow has the name {place} already"
                findings.append(Finding(("flows", place, "name"), text, "leave it out"))
            elif name is not None and name in seen:
                text = f'there is another flow "{name}", at flows[{seen[name]}]'
                findings.append(Finding(("flows", place, "name"), text, "give one of them another name"))
            elif name is not None:
                seen[name] = place
        if findings:
            raise Unusable(*findings)
        return self


class FlowTarget(Section):
    """What a fault can name of flows: an end of one."""

    flow: str | None = None
    end: Literal["source", "sink"] = Field(default="sink", description="Of that flow")
