"""netjson: the network graph and this node's routes in the format of netjson.org."""

from collections.abc import Sequence
from typing import Any

import msgspec

from node_agent.olsr.info.request import Dialect
from node_agent.olsr.info.snapshot import Snapshot
from node_agent.olsr.wire import dotted


def _head(kind: str, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "type": kind,
        "protocol": "olsrv1",
        "version": snapshot.version.rpartition(" ")[2],
        "metric": snapshot.config.quality,
        "revision": snapshot.version,
        "router_id": dotted(snapshot.view.main_address),
    }


def _cost(cost: float) -> dict[str, Any]:
    return {"cost": round(cost, 6), "cost_text": f"{cost:.3f}"}


def network_routes(snapshot: Snapshot) -> dict[str, Any]:
    return _head("NetworkRoutes", snapshot) | {
        "routes": [
            {
                "destination": f"{dotted(route.destination)}/{route.prefix}",
                "next": dotted(route.gateway),
                "device": route.interface,
            }
            | _cost(route.cost)
            for route in snapshot.view.routes
        ]
    }


def network_graph(snapshot: Snapshot) -> dict[str, Any]:
    """Returns the directed graph, every edge once (olsrd repeats a node's own), without broken links."""
    view = snapshot.view
    aliases = {mid.main: mid.aliases for mid in view.mid}
    if len(view.interfaces) > 1:
        aliases[view.main_address] = tuple(each.address for each in view.interfaces[1:])
    edges = {(edge.last_hop, edge.destination): edge.cost for edge in view.topology if edge.cost is not None}
    known = {view.main_address} | {node for edge in edges for node in edge}
    return _head("NetworkGraph", snapshot) | {
        "nodes": [
            {"id": dotted(node)}
            | ({"local_addresses": [dotted(alias) for alias in aliases[node]]} if node in aliases else {})
            for node in sorted(known)
        ],
        "links": [
            {"source": dotted(source), "target": dotted(target)} | _cost(cost)
            for (source, target), cost in edges.items()
        ],
    }


def _network_collection(snapshot: Snapshot) -> dict[str, Any]:
    return {"type": "NetworkCollection", "collection": [network_routes(snapshot), network_graph(snapshot)]}


_SECTIONS = {
    "NetworkRoutes": network_routes,
    "NetworkGraph": network_graph,
    "NetworkCollection": _network_collection,
}


def render(snapshot: Snapshot, sections: Sequence[str]) -> str:
    """Renders the first section only: an answer is one object."""
    if not sections:
        return ""
    return msgspec.json.encode(_SECTIONS[sections[0]](snapshot)).decode()


NETJSON = Dialect(
    content_type="application/json; charset=utf-8",
    sections=tuple(_SECTIONS),
    commands={
        **{name: (name,) for name in _SECTIONS},
        "": ("NetworkCollection",),
        "DeviceConfiguration": (),
        "DeviceMonitoring": (),
    },
    render=render,
)
