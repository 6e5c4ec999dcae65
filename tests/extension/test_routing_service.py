"""A routing protocol of somebody else, in virtual time: nodes reach their neighbours and nobody else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.truth import Links
from orchestrator.services.base import RoutingService
from orchestrator.services.ground_truth import TrueLinks
from orchestrator.services.virtual import Joined, VirtualNetwork
from orchestrator.spec.routing import ROUTING_SERVICES, RoutingSection
from tests.extension.harness import Rove, installed, refused, registered, run_of, written


class Neighbours(RoutingSection):
    metric: Literal["etx", "hops"] = "hops"
    patience: float = 1.0


class NeighboursService(RoutingService):
    """Without a daemon: it runs in virtual time only."""

    protocol = "neighbours"
    section = Neighbours
    has_daemon = False

    def __init__(self, routing: Neighbours) -> None:
        self._routing = routing

    def in_virtual_time(self, network: VirtualNetwork) -> "NeighbourRouting":
        return NeighbourRouting(self._routing, network)


class NeighbourRouting:
    def __init__(self, routing: Neighbours, network: VirtualNetwork) -> None:
        self._links = TrueLinks(network.now_ns, routing.metric)
        self._node_at = network.node_at

    def next_hop(self, node: str) -> NextHop:
        return lambda destination: self._node_at.get(destination)

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        return Joined(self._links)

    def update(self, links: Links) -> None:
        self._links.update(links)


OFFER = "from tests.extension.test_routing_service import NeighboursService as Service\n"


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(ROUTING_SERVICES, neighbours=NeighboursService):
        run = run_of(rove, written(tmp_path, routing={"protocol": "neighbours", "patience": 2.0}))
        assert "patience: 2.0" in (run / "spec.yaml").read_text()
        run_of(rove, written(tmp_path, routing="neighbours"))


def test_named_by_its_file(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "my_protocol.py").write_text(OFFER)
    run_of(rove, written(tmp_path, routing="my_protocol.py:Service"))


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_protocol.py").write_text(OFFER)
    with installed(tmp_path, ROUTING_SERVICES, {"neighbours": "somebodys_protocol:Service"}):
        run_of(rove, written(tmp_path, routing="neighbours"))


def test_it_runs_where_it_says(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "my_protocol.py").write_text(OFFER)
    file = written(tmp_path, {"hosts": {}}, routing="my_protocol.py:Service", backend="ssh")
    assert "neighbours does not run on the backend ssh" in refused(rove, file)
    file = written(tmp_path, routing="my_protocol.py:Service", backend="netns")
    assert "neighbours does not run on the backend netns" in refused(rove, file)


def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "my_protocol.py").write_text("class Service: pass\n")
    said = refused(rove, written(tmp_path, routing={"protocol": "my_protocol.py:Service"}))
    assert "routing.protocol: my_protocol.py:Service is not a routing service: derive a class from" in said
    failing = OFFER + "class Other(Service):\n    def __init__(self, routing):\n        self.x = routing.x\n"
    (tmp_path / "other_protocol.py").write_text(failing)
    said = refused(rove, written(tmp_path, routing="other_protocol.py:Other"))
    assert "other_protocol.py, line 4: AttributeError" in said
