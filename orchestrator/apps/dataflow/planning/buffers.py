"""Computes how many tuples of each stream must be buffered for windows: all they need, until their results
are done.

Operators that take tuples one by one keep what those after them need. A window of windows needs everything
that its windows are made of. Time windows need a known rate; without one, nothing is reported.
"""

from math import ceil
from typing import NamedTuple

from node_agent.apps.dataflow.delivery.limits import EMPTY_PER_ITEM, DeliveryLimits, Overflow
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow
from orchestrator.apps.dataflow.planning.cpu import stated, unit_rates


class Need(NamedTuple):
    """This many tuples of a stream must fit, because operator ``window`` needs them."""

    tuples: int
    window: str


class Shortage(NamedTuple):
    """``upstream`` keeps only ``room`` (tuples or bytes) for ``downstream``, which is too little.

    ``own``: the edge has a buffer of its own, which is too small.
    """

    upstream: str
    downstream: str
    need: Need
    room: int
    in_bytes: bool
    own: bool


def needs(query: Query) -> dict[tuple[str, str], Need]:
    """Returns needs by upstream and downstream operator, if one tuple is not enough; the largest of any
    stream.
    """
    rates, origins = unit_rates(query), query.origins()
    needed: dict[tuple[str, str], Need] = {}
    for name in reversed(query.topological()):
        below = [need for (upstream, _), need in needed.items() if upstream == name]
        results = max(below, default=Need(1, name))
        for upstream in query.upstream(name):
            match query.operator(name).takes:
                case Each() | SameTau():
                    need = results
                case CountWindow(size, slide):
                    need = Need(max(size, slide) + (results.tuples - 1) * slide, results.window)
                case TimeWindow(size_ns, slide_ns):
                    span_ns = max(size_ns, slide_ns) + (results.tuples - 1) * slide_ns
                    rate = max(rates[origin.partition("/")[0]] for origin in origins[upstream])
                    # Only a tuple after the window shows that the window is complete.
                    need = Need(ceil(span_ns * rate / 1e9) + 1 if rate else 1, results.window)
            if need.tuples > 1:
                needed[upstream, name] = need
    return needed


def shortages(query: Query, limits: DeliveryLimits) -> list[Shortage]:
    """Finds windows that could never be completed. Bytes are checked if sources state the size of their
    tuples.
    """
    found = []
    for (upstream, downstream), need in needs(query).items():
        own = query.operator(downstream).buffers.get(upstream)
        items = limits.items if own is None else own
        room = items * (EMPTY_PER_ITEM if limits.overflow is Overflow.SPILL else 1)
        size = stated(query.operator(upstream), "payload") if not query.upstream(upstream) else 0.0
        most = limits.bytes + (limits.spill_bytes if limits.overflow is Overflow.SPILL else 0)
        # A buffer that drops holds one tuple less than its limit, because the next one must fit.
        spare = 1 if limits.overflow is Overflow.DROP_OLDEST else 0
        if need.tuples + spare > room:
            found.append(Shortage(upstream, downstream, need, room, False, own is not None))
        elif (need.tuples - 1 + spare) * size >= most:
            found.append(Shortage(upstream, downstream, need, most, True, own is not None))
    return found
