"""jsoninfo: the same keys, types and units as olsrd 0.9. Internals of olsrd are constants here.

``/counters`` is ours: messages and bytes by kind, for the protocol's overhead, and refusals.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from node_agent.olsr import validity
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.info.request import Dialect
from node_agent.olsr.info.snapshot import BROKEN_LINK, BROKEN_ROUTE, Snapshot
from node_agent.olsr.view import InterfaceView, LinkView, NeighbourView
from node_agent.olsr.wire import dotted

_WHOLE = 65536  # the multiplier of a link whose quality is not lowered on purpose
_AGING = 0.05


def _cost(cost: float) -> float:
    return round(cost, 6)


def _quality(quality: float) -> float:
    return round(quality, 3)


def _neighbour(neighbour: NeighbourView) -> dict[str, Any]:
    return {
        "ipAddress": dotted(neighbour.address),
        "symmetric": neighbour.symmetric,
        "willingness": neighbour.willingness,
        "isMultiPointRelay": neighbour.is_mpr,
        "wasMultiPointRelay": neighbour.is_mpr,
        "multiPointRelaySelector": neighbour.is_mpr_selector,
        "skip": False,
        "neighbor2nocov": 0,
        "linkcount": neighbour.links,
    }


def _neighbours(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        _neighbour(each) | {"twoHopNeighborCount": len(each.two_hop)} for each in snapshot.view.neighbours
    ]


def _two_hop(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        _neighbour(each)
        | {
            "twoHopNeighbors": [dotted(far.address) for far in each.two_hop],
            "twoHopNeighborCount": len(each.two_hop),
        }
        for each in snapshot.view.neighbours
    ]


def _link(link: LinkView, snapshot: Snapshot) -> dict[str, Any]:
    measured = not snapshot.counts_hops
    return {
        "localIP": dotted(link.local),
        "remoteIP": dotted(link.remote),
        "olsrInterface": link.interface,
        "ifName": link.interface,
        "validityTime": link.validity_ms,
        "symmetryTime": link.symmetry_ms,
        "asymmetryTime": link.asymmetry_ms,
        "vtime": link.vtime_ms,
        "currentLinkStatus": link.status,
        "previousLinkStatus": link.previous_status,
        "hysteresis": 0.0,
        "pending": False,
        "lostLinkTime": 0,
        "helloTime": 0,
        "lastHelloTime": 0,
        "seqnoValid": False,
        "seqno": 0,
        "lossHelloInterval": link.hello_interval_ms if measured else 0,
        "lossTime": link.loss_ms if measured else 0,
        "lossMultiplier": _WHOLE if measured else 0,
        "linkCost": _cost(snapshot.link_cost(link.cost)),
        "linkQuality": _quality(link.quality),
        "neighborLinkQuality": _quality(link.neighbour_quality),
    }


def _links(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [_link(link, snapshot) for link in snapshot.view.links]


def _routes(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "destination": dotted(route.destination),
            "genmask": route.prefix,
            "gateway": dotted(route.gateway),
            "metric": route.hops,
            "etx": _cost(snapshot.path_cost(route.cost)),
            "rtpMetricCost": _cost(snapshot.path_cost(route.cost)),
            "networkInterface": route.interface,
        }
        for route in snapshot.view.routes
    ]


def _topology(snapshot: Snapshot) -> list[dict[str, Any]]:
    degree = Counter(edge.last_hop for edge in snapshot.view.topology)
    return [
        {
            "lastHopIP": dotted(edge.last_hop),
            "pathCost": _cost(snapshot.path_cost(edge.path_cost)),
            "validityTime": edge.validity_ms,
            "refCount": degree[edge.last_hop],
            "msgSeq": edge.seqno,
            "msgHops": edge.message_hops,
            "hops": edge.path_hops,
            "ansn": edge.ansn,
            "tcIgnored": edge.ignored,
            "errSeq": 0,
            "errSeqValid": False,
            "destinationIP": dotted(edge.destination),
            "tcEdgeCost": _cost(snapshot.path_cost(edge.cost)),
            "ansnEdge": edge.edge_ansn,
            "linkQuality": _quality(edge.quality),
            "neighborLinkQuality": _quality(edge.neighbour_quality),
        }
        for edge in snapshot.view.topology
    ]


def _hna(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "gateway": dotted(hna.gateway),
            "destination": dotted(hna.network),
            "genmask": hna.prefix,
            "validityTime": hna.validity_ms,
        }
        for hna in snapshot.view.hna
    ]


def _mid(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "main": {"ipAddress": dotted(mid.main), "validityTime": mid.validity_ms},
            "aliases": [
                {"ipAddress": dotted(alias), "validityTime": mid.validity_ms} for alias in mid.aliases
            ],
        }
        for mid in snapshot.view.mid
    ]


def _interfaces(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "configured": True,
            "hostEmulation": False,
            "hostEmulationAddress": "0.0.0.0",
            "olsrInterface": _running(each, snapshot),
            "InterfaceConfiguration": _configured(snapshot.config),
            "InterfaceConfigurationDefaults": _NOT_CONFIGURED,
        }
        for each in snapshot.view.interfaces
    ]


def _running(interface: InterfaceView, snapshot: Snapshot) -> dict[str, Any]:
    facts = snapshot.interfaces.get(interface.name)
    if facts is None:
        return {"up": False}
    config = snapshot.config
    return {
        "up": True,
        "ipv4Address": dotted(interface.address),
        "ipv4Netmask": facts.netmask,
        "ipv4Broadcast": facts.broadcast,
        "mode": "mesh",
        "ipv6Address": "::",
        "ipv6Multicast": "::",
        "ipAddress": dotted(interface.address),
        "emulatedInterface": False,
        "olsrSocket": -1,
        "sendSocket": -1,
        "metric": 0,
        "mtu": interface.mtu,
        "flags": facts.flags,
        "index": facts.index,
        "wireless": facts.wireless,
        "name": interface.name,
        "seqNum": interface.packet_seqno,
        "messageTimes": {
            "hello": interface.next_hello_ms,
            "tc": interface.next_tc_ms,
            "mid": interface.next_mid_ms or 0,
            "hna": interface.next_hna_ms or 0,
        },
        "icmpRedirectBackup": False,
        "spoofFilterBackup": False,
        "helloEmissionInterval": round(config.hello_interval * 1000),
        "validityTimes": {
            "hello": _on_the_wire_ms(config.hello_validity),
            "tc": _on_the_wire_ms(config.tc_validity),
            "mid": _on_the_wire_ms(config.mid_validity),
            "hna": _on_the_wire_ms(config.hna_validity),
        },
        "forwardingTimeout": 0,
        "sgwZeroBwTimeout": 0,
        "ttlIndex": interface.ttl_index,
        "immediateSendTc": False,
    }


def _on_the_wire_ms(seconds: float) -> int:
    return round(validity.seconds(validity.encode(seconds)) * 1000)


def _interface_configuration(
    mode: str, times: Sequence[float], multipliers: int, detect: bool
) -> dict[str, Any]:
    pairs = zip(times[::2], times[1::2], strict=True)
    return {
        "ipv4Broadcast": "0.0.0.0",
        "ipv6Multicast": "0.0.0.0",
        "ipv4Source": "0.0.0.0",
        "ipv6Source": "0.0.0.0",
        "ipv6SourcePrefixLength": 0,
        "mode": mode,
        "weightValue": 0,
        "weightFixed": False,
        **{
            kind: {"emissionInterval": interval, "validityTime": valid}
            for kind, (interval, valid) in zip(("hello", "tc", "mid", "hna"), pairs, strict=True)
        },
        "linkQualityMultipliers": [],
        "linkQualityMultipliersCount": multipliers,
        "autoDetectChanges": detect,
    }


_NOT_CONFIGURED = _interface_configuration("", (0.0,) * 8, -1, False)


def _configured(config: OlsrConfig) -> dict[str, Any]:
    times = (
        config.hello_interval,
        config.hello_validity,
        config.tc_interval,
        config.tc_validity,
        config.mid_interval,
        config.mid_validity,
        config.hna_interval,
        config.hna_validity,
    )
    return _interface_configuration("mesh", times, 0, True)


def _version(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "version": snapshot.version,
        "gitDescriptor": "",
        "gitSha": "0" * 40,
        "releaseVersion": snapshot.version.rpartition(" ")[2],
        "sourceHash": "",
    }


def _config(snapshot: Snapshot) -> dict[str, Any]:
    config = snapshot.config
    return {
        "configurationChecksum": _checksum(config),
        "ipVersion": 4,
        "mainIp": dotted(snapshot.view.main_address),
        "willingness": config.willingness,
        "tcRedundancy": config.tc_redundancy,
        "mprCoverage": config.mpr_coverage,
        "linkQuality": {
            "level": 0 if snapshot.counts_hops else 2,
            "fishEye": config.fisheye,
            "aging": _AGING,
            "algorithm": config.quality,
        },
        "hna": [
            {"destination": network.partition("/")[0], "genmask": _prefix(network)} for network in config.hna
        ],
        "brokenLinkCost": int(BROKEN_LINK),
        "brokenRouteCost": int(BROKEN_ROUTE),
    }


def _prefix(network: str) -> int:
    return int(network.partition("/")[2] or 32)


_SECTIONS: dict[str, Callable[[Snapshot], Any]] = {
    "neighbors": _neighbours,
    "links": _links,
    "routes": _routes,
    "hna": _hna,
    "mid": _mid,
    "topology": _topology,
    "gateways": lambda _: {"ipv4": [], "ipv6": []},
    "interfaces": _interfaces,
    "2hop": _two_hop,
    "sgw": lambda _: {"egress": [], "ipv4": [], "ipv6": []},
    "version": _version,
    "config": _config,
    "plugins": lambda _: [],
    "counters": lambda snapshot: snapshot.counters,
    "refusals": lambda snapshot: snapshot.refusals,
}
_COUNTED = ("counters", "refusals")
_STARTUP = ("version", "config", "plugins")
_ALL = tuple(name for name in _SECTIONS if name not in _COUNTED)
_RUNTIME = tuple(name for name in _ALL if name not in _STARTUP)


def _checksum(config: OlsrConfig) -> str:
    return f"{zlib.crc32(msgspec.json.encode(config)):08x}"


def render(snapshot: Snapshot, sections: Sequence[str]) -> str:
    view = snapshot.view
    answer: dict[str, Any] = {
        "pid": snapshot.pid,
        "systemTime": snapshot.system_time_s,
        "timeSinceStartup": (view.taken_ns - view.started_ns) // 1_000_000,
        "configurationChecksum": _checksum(snapshot.config),
    }
    answer |= {section: _SECTIONS[section](snapshot) for section in sections}
    return msgspec.json.encode(answer).decode() + "\n"


JSONINFO = Dialect(
    content_type="application/vnd.api+json; charset=utf-8",
    sections=tuple(_SECTIONS),
    commands={
        **{name: (name,) for name in _ALL},
        "": _ALL,
        "all": _ALL,
        "runtime": _RUNTIME,
        "startup": _STARTUP,
        "neighbours": ("neighbors", "links"),
        "counters": _COUNTED,
    },
    render=render,
)
