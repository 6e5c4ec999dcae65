"""Turns a topology into the network setup order for each of its real nodes."""

from collections.abc import Mapping

from node_agent.host.setup.order import Ibss, Lan, Mesh, Radio, SetupOrder, ShapedLink
from orchestrator.spec.hosts import RealNode
from orchestrator.spec.links import Links, Quality
from orchestrator.spec.setup import ConfiguredSetup, IbssSetup, LanSetup, MeshSetup, Setup, frequency_of
from orchestrator.spec.topology import Topology


def shapes_links(topology: Topology) -> bool:
    """Says whether links are shaped, which needs the hardware addresses of the nodes' interfaces."""
    return topology.links is not None


def setup_order(
    topology: Topology, node: str, hardware_addresses: Mapping[str, str], run: str
) -> SetupOrder | None:
    """Returns the node's order; None if nothing changes. Omits links to nodes of unknown hardware address."""
    own = topology.real_nodes()[node]
    peers = [peer for peer in topology.real_nodes() if peer != node]
    links = _shaped(topology.links or Links(), node, peers, hardware_addresses)
    if isinstance(own.setup, ConfiguredSetup):
        return SetupOrder(run, own.interface, links=links) if links else None
    return SetupOrder(
        run=run,
        interface=own.interface,
        address=_address(own, own.setup),
        radio=_radio(own.setup),
        forwarding=True,
        links=links,
    )


def _shaped(
    links: Links, node: str, peers: list[str], hardware_addresses: Mapping[str, str]
) -> tuple[ShapedLink, ...]:
    """Returns the shaping at this node: losses are applied by the receiver, rates and delays by the
    sender."""
    shaped = []
    for peer in peers:
        there, back = links.quality(node, peer), links.quality(peer, node)
        if peer in hardware_addresses and Quality(back.loss, there.rate, there.delay) != Quality():
            hardware = hardware_addresses[peer]
            shaped.append(ShapedLink(peer, hardware, back.loss, there.rate, there.delay))
    return tuple(shaped)


def _address(node: RealNode, setup: LanSetup | IbssSetup | MeshSetup) -> str:
    return f"{node.address}/{setup.prefix}"


def _radio(setup: Setup) -> Radio | None:
    match setup:
        case IbssSetup():
            return Ibss(setup.ssid, frequency_of(setup.channel), setup.bssid)
        case MeshSetup():
            return Mesh(setup.ssid, frequency_of(setup.channel))
        case LanSetup():
            return Lan()
        case ConfiguredSetup():
            return None
