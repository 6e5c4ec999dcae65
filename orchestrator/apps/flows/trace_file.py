"""A trace of a flow from a CSV file: the columns t (seconds since the flow's start) and size (bytes).

t,size
0.0,512
0.25,1400
"""

from pathlib import Path

from node_agent.apps.flows.model import LARGEST_CHUNK, LARGEST_DATAGRAM, MOST_TRACE, SMALLEST, Protocol, Trace
from orchestrator.mobility.trace_file import Place, read_table

COLUMNS = ("t", "size")
NS = 1_000_000_000
LATEST_S = 30 * 86400


def read_flow_trace(file: Path, protocol: Protocol) -> Trace:
    """Raises TraceError, which names the line."""
    times: list[int] = []
    sizes: list[int] = []
    columns, rows = read_table(file, (COLUMNS,))
    for place, row in rows:
        t, size = place.values(row, columns)
        seconds = place.number(t, "t")
        if not 0 <= seconds <= LATEST_S:
            raise place.error(f"t is {seconds:g} s: a flow begins at 0 and lasts at most 30 days")
        at_ns = round(seconds * NS)
        if times and at_ns < times[-1]:
            raise place.error(f"time runs backwards: {seconds:g} s after {times[-1] / NS:g} s")
        if len(times) == MOST_TRACE:
            raise place.error(f"a trace has at most {MOST_TRACE:,} lines")
        times.append(at_ns)
        sizes.append(_size(place, size, protocol))
    if not times:
        raise Place(str(file)).error("lists no packet")
    return Trace(tuple(times), tuple(sizes))


def _size(place: Place, text: str, protocol: Protocol) -> int:
    size = place.number(text, "size")
    if size != int(size):
        raise place.error(f"size is not a whole number of bytes: {text[:40]!r}")
    most = LARGEST_DATAGRAM if protocol == "udp" else LARGEST_CHUNK
    if not SMALLEST <= size <= most:
        raise place.error(
            f"size is {size:.0f} bytes: a {protocol.upper()} packet has {SMALLEST} to {most}",
            f"{SMALLEST} bytes are the header that every packet needs to be measured",
        )
    return int(size)
