"""Cables beside a shared radio: two nodes with a cable send everything over it, all others use the radio.

A broadcast goes out on both; what comes by radio from the other end of a cable is not taken a second time.
"""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.contacts.plan import ContactLink, ContactPlan
from orchestrator.radio.medium import BROADCAST, Frame, Medium, OnFrame
from orchestrator.radio.truth import Links

WIRE_QUEUE = 1000
"""Frames that may wait at each end of a cable, as Linux lets them wait at a network card."""

Wired = Mapping[str, frozenset[str]]
"""By node, those at the other ends of its cables."""


def wired_plan(wires: Sequence[ContactLink], nodes: Sequence[str]) -> ContactPlan:
    return ContactPlan(tuple(nodes), tuple(wires), 0.0)


def wired_nodes(wires: Iterable[ContactLink]) -> Wired:
    ends: dict[str, set[str]] = {}
    for wire in wires:
        for one, other in wire.directions:
            ends.setdefault(one, set()).add(other)
    return {node: frozenset(others) for node, others in ends.items()}


def with_wires(radio: Links, wires: Links, wired: Wired) -> dict[str, dict[str, float]]:
    """Returns the links by radio; where two nodes have a cable, that in its place, be it up or cut."""
    nodes = dict.fromkeys((*radio, *wires))
    return {
        node: {
            **{peer: cost for peer, cost in radio.get(node, {}).items() if peer not in wired.get(node, ())},
            **wires.get(node, {}),
        }
        for node in nodes
    }


class WiredMedium:
    """Implements ``Medium`` with two others: ``wires`` for those who have a cable, ``radio`` for the rest."""

    def __init__(self, radio: Medium, wires: Medium, wired: Wired) -> None:
        self._radio, self._wires, self._wired = radio, wires, wired

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        wired = self._wired.get(node)
        if wired is None:
            self._radio.attach(node, received, failed)
            return

        def by_radio(frame: Frame) -> None:
            if frame.source not in wired:
                received(frame)

        self._radio.attach(node, by_radio, failed)
        self._wires.attach(node, received, failed)

    def send(self, frame: Frame) -> None:
        wired = self._wired.get(frame.source, ())
        if frame.destination in wired:
            self._wires.send(frame)
            return
        if wired and frame.destination == BROADCAST:
            self._wires.send(frame)
        self._radio.send(frame)
