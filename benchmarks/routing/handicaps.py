"""Routing protocols with a handicap, for ``benchmarks.routing_gap --handicaps``. Experiments name this file.

``Truth`` is ground truth that is some seconds old, or that judges links by short frames. ``Olsr`` is our OLSR
with ``quality: fast`` and one part of that switched off. Both replace constants of the product, in the
process of one simulation that ends with its run.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, Literal

from node_agent.olsr import fast, neighbourhood
from node_agent.olsr import service as daemon
from orchestrator.radio import survey
from orchestrator.radio.truth import Links
from orchestrator.services.base import RoutingService, TrueMetric
from orchestrator.services.ground_truth import TrueRouting
from orchestrator.services.olsr import Olsr as OlsrSection
from orchestrator.services.olsr import OlsrRouting, OlsrService
from orchestrator.services.virtual import VirtualNetwork
from orchestrator.spec.routing import RoutingSection

HELLO_BYTES = 120
"""About a HELLO of a node with seven neighbours, as an Ethernet frame."""

Part = Literal["prediction", "doubt", "silence", "acknowledgements", "hurry", "signals"]
PARTS: dict[Part, tuple[tuple[Any, str, Any], ...]] = {
    "prediction": ((fast, "AHEAD_S", 0.0),),
    "doubt": ((fast, "_DOUBT", 1.0),),
    "silence": ((fast, "_SILENT", inf),),
    "acknowledgements": ((neighbourhood.Neighbourhood, "_prove", lambda *_: None),),
    "hurry": ((daemon, "_QUICK_SPACING_NS", daemon._SPACING_NS),),
    "signals": (),  # the radio tells nothing, so neither are there frames given up or acknowledged
}


class TruthSection(RoutingSection):
    metric: TrueMetric = "etx"
    age: float = 0.0
    short_frames: bool = False


class Truth(RoutingService):
    protocol = "late_truth"
    section = TruthSection
    has_daemon = False

    def __init__(self, routing: TruthSection) -> None:
        self._routing = routing

    def in_virtual_time(self, network: VirtualNetwork) -> TrueRouting:
        if self._routing.short_frames:
            survey.FULL_SIZE = HELLO_BYTES
        return LateRouting(self._routing, network)


class LateRouting(TrueRouting):
    """Gives the links of ``age`` seconds ago."""

    def __init__(self, routing: TruthSection, network: VirtualNetwork) -> None:
        super().__init__(routing.metric, network)
        self._now_ns: Callable[[], int] = network.now_ns
        self._age_ns = round(routing.age * 1e9)
        self._seen: deque[tuple[int, Links]] = deque()

    def update(self, links: Links) -> None:
        now = self._now_ns()
        self._seen.append((now, links))
        while len(self._seen) > 1 and self._seen[1][0] <= now - self._age_ns:
            self._seen.popleft()
        super().update(self._seen[0][1])


class FastSection(OlsrSection):
    protocol: str  # type: ignore[assignment]
    without: Part


class Olsr(OlsrService):
    protocol = "olsr_without"
    section = FastSection  # type: ignore[assignment]

    def __init__(self, routing: FastSection) -> None:
        super().__init__(routing)
        self._without: Part = routing.without

    def in_virtual_time(self, network: VirtualNetwork) -> OlsrRouting:
        for owner, name, value in PARTS[self._without]:
            assert hasattr(owner, name), f"{owner} has no {name} any more"
            setattr(owner, name, value)
        if self._without == "signals":
            network = replace(network, radio_of=lambda node: None)
        return super().in_virtual_time(network)
