"""Reads babeld's local socket (``babeld -g PORT``: read only, at ::1) with one ``dump``.

Babel is a distance-vector protocol: it knows what each destination costs from here and by which neighbour,
not what other nodes pay. On links with quality estimation (wireless, or all with ``-w``) its cost is 256 ×
ETX, where ETX counts both directions; without (wired), a link that is up costs 96. 65535 is infinity.
"""

from collections.abc import Iterator

from node_agent.linkstate.ask import ask
from node_agent.linkstate.reader import Edge, Garbage, Reading, Rejected, ipv4, is_ipv4, number
from node_agent.linkstate.source import asking

SOURCE = "babeld"
HOST = "::1"
PORT = 33123
ETX_1 = 256
_LEAST, _INFINITY = 1, 65535


class BabeldReader:
    def __init__(self, host: str = HOST, port: int = PORT) -> None:
        self._host = host
        self._port = port

    async def read(self) -> Reading:
        return parse(await ask(self._host, self._port, b"dump\nquit\n"))


def parse(answer: bytes) -> Reading:
    """Reads the answer: the daemon's greeting up to an ``ok``, then the dump up to another."""
    try:
        lines = [line.split() for line in answer.decode("ascii").splitlines()]
    except UnicodeDecodeError as error:
        raise Garbage("this is not what babeld writes") from error
    if not lines or lines[0][:1] != ["BABEL"]:
        raise Garbage(f"babeld does not greet like that: {answer[:40]!r}")
    dump = _after_greeting(lines)
    own = list(dict.fromkeys(_own_addresses(dump)))
    if not own:
        raise Garbage("babeld has no interface with an IPv4 address")
    costs: dict[str, float] = {}
    for route in _described(dump, "route"):
        if route.get("installed") == "yes" and (destination := _host_of(route)):
            metric = number(route.get("metric", ""), "metric")
            if _LEAST <= metric < _INFINITY and destination not in own:
                costs[destination] = metric / ETX_1
    row = {address: Edge(cost, min(1.0, 1 / cost), hops=None) for address, cost in costs.items()}
    aliases = dict.fromkeys(own[1:], own[0])
    return Reading({own[0]: row}, "etx", SOURCE, aliases, own_only=True)


def _after_greeting(lines: list[list[str]]) -> list[list[str]]:
    ends = [i for i, line in enumerate(lines) if line[:1] in (["ok"], ["no"], ["bad"])]
    if len(ends) < 2:
        raise Garbage("babeld's answer ends too early")
    if lines[ends[1]] != ["ok"]:
        raise Rejected(f"babeld answers {' '.join(lines[ends[1]])[:80]!r}")
    return lines[ends[0] + 1 : ends[1]]


def _described(dump: list[list[str]], kind: str) -> Iterator[dict[str, str]]:
    """``add KIND ID key value …``"""
    for words in dump:
        if words[:2] == ["add", kind]:
            yield dict(zip(words[3::2], words[4::2], strict=False))


def _own_addresses(dump: list[list[str]]) -> Iterator[str]:
    for interface in _described(dump, "interface"):
        if "ipv4" in interface:
            yield ipv4(interface["ipv4"])


def _host_of(route: dict[str, str]) -> str:
    """Returns the IPv4 host that the route leads to; empty for networks and IPv6."""
    address, _, length = route.get("prefix", "").partition("/")
    return address if length == "32" and is_ipv4(address) else ""


READER = asking("babeld's local socket", ("etx", "log_delivery"), BabeldReader, PORT, HOST)
