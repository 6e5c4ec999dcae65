"""A flow as both halves know it, and what a node is given of the flows that begin or end there."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Protocol = Literal["udp", "tcp"]
Distribution = Literal["constant", "exponential"]
Records = Literal["seconds", "packets"]

Seconds = Annotated[float, Meta(ge=0, le=30 * 86400)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=30 * 86400)]

SMALLEST = 42
"""Bytes of a packet: the header of a datagram (``wire``) has as many, and that of a chunk has fewer."""
LARGEST_DATAGRAM = 1472
"""Bytes that a datagram carries in one frame of 1500 bytes, the MTU of our radios: 20 go to IP, 8 to UDP."""
LARGEST_CHUNK = 64 * 1024
MOST_FLOWS = 1000
MOST_PACKETS = 2**32 - 1
"""Of a flow: their numbers have 32 bits."""
MOST_TRACE = 200_000
"""Lines of a trace."""

Size = Annotated[int, Meta(ge=SMALLEST, le=LARGEST_CHUNK)]


class OnOff(Struct, frozen=True):
    """The flow sends for ``on`` seconds and is silent for ``off`` seconds, in turn; it begins with ``on``.

    ``exponential``: these are the means of exponential distributions.
    """

    on: PositiveSeconds
    off: PositiveSeconds
    distribution: Distribution = "constant"


class Flow(Struct, frozen=True):
    """Traffic from ``source`` to ``sink``, in packets of ``size`` bytes (of a TCP flow: chunks written).

    ``rate``: in bit/s, counting ``size`` alone; None: as fast as it goes, or as the trace says. ``start`` and
    ``stop``: seconds after the run begins to send. ``bytes``, ``packets``: the flow ends after as many.
    ``trace``: names a trace in ``FlowsConfig.traces``. ``seed``: for what the flow draws.
    """

    name: str
    source: str
    sink: str
    protocol: Protocol
    size: Size
    rate: Annotated[float, Meta(gt=0, le=1e12)] | None = None
    on_off: OnOff | None = None
    start: Seconds = 0.0
    stop: PositiveSeconds | None = None
    bytes: Annotated[int, Meta(ge=1)] | None = None
    packets: Annotated[int, Meta(ge=1, le=MOST_PACKETS)] | None = None
    trace: str = ""
    seed: str = ""
    records: Records = "seconds"

    @property
    def paced(self) -> bool:
        """Whether a schedule says when to send; otherwise the flow sends as fast as it goes."""
        return self.rate is not None or bool(self.trace)


class Trace(Struct, frozen=True):
    """What to send when: nanoseconds after the flow's start, in order, and the bytes of each packet."""

    at_ns: tuple[Annotated[int, Meta(ge=0)], ...]
    sizes: tuple[Size, ...]


class FlowsConfig(Struct, frozen=True):
    """The flows that begin or end at one node, and the traces of those that begin there."""

    flows: tuple[Flow, ...] = ()
    traces: dict[str, Trace] = {}


def nodes_of(config: FlowsConfig) -> tuple[str, ...]:
    """The nodes that these flows begin or end at."""
    return tuple(dict.fromkeys(end for flow in config.flows for end in (flow.source, flow.sink)))


def problems(config: FlowsConfig, node: str) -> list[str]:
    """Why a node cannot run these flows; empty if it can."""
    found = []
    names = [flow.name for flow in config.flows]
    if len(set(names)) < len(names):
        found.append("two flows have the same name")
    if len(names) > MOST_FLOWS:
        found.append(f"{len(names)} flows are more than {MOST_FLOWS}")
    for flow in config.flows:
        found += [f"flow {flow.name}: {problem}" for problem in _problems(flow, config, node)]
    return found


def _problems(flow: Flow, config: FlowsConfig, node: str) -> list[str]:
    found = []
    if flow.source == flow.sink:
        found.append(f"it begins and ends at {flow.source}")
    if node not in (flow.source, flow.sink):
        found.append(f"it neither begins nor ends at {node}")
    if flow.protocol == "udp" and not flow.paced:
        found.append("a UDP flow needs a rate or a trace")
    sizes = [flow.size]
    if node == flow.source and flow.trace:
        trace = config.traces.get(flow.trace)
        if trace is None or len(trace.at_ns) != len(trace.sizes) or len(trace.sizes) > MOST_TRACE:
            found.append(f"the trace {flow.trace} is missing or cannot be used")
        else:
            sizes += trace.sizes
    if flow.protocol == "udp" and max(sizes) > LARGEST_DATAGRAM:
        found.append(f"a datagram of {max(sizes)} bytes is larger than {LARGEST_DATAGRAM}")
    return found
