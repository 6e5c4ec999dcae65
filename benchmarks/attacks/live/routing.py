"""Attacks on routing daemons: a neighbour on the air lies, floods, repeats, speaks in others' names."""

import random
import socket
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from typing import NamedTuple

from benchmarks.attacks.live.airs import EVERYBODY, HONEST, MALLORY, Air, daemons, spoofed
from benchmarks.attacks.live.siege import NODE, STRANGER, Besieged, Tell
from benchmarks.attacks.mutation import changed_bytes
from benchmarks.attacks.parsers.routing import hello_of, lie
from benchmarks.olsr_captures import payloads
from benchmarks.radio.tap import lacking
from node_agent.aodv import wire as aodv
from node_agent.olsr import wire
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.wire import HNA, LQ_TC, MID, Message

OLSR_PORT, AODV_PORT = 698, aodv.PORT
QUERY_PORTS = (9090, 2006, 2005)
FAST = OlsrConfig(hello_interval=0.5, hello_validity=5.0, tc_interval=1.0, tc_validity=15.0)
CONVERGED_S = 40.0
MOST_MEGABYTES, MOST_DESCRIPTORS = 32.0, 16
LONG = 0xFF
"""The longest validity that a message can claim: 3,968 s."""
_FULL = 0xFFFFFFFF


class Voice:
    """Mallory's, over the air: packets are numbered, and not faster than the air takes them."""

    def __init__(self, air: Air, port: int) -> None:
        self._air = air
        self._port = port
        self.udp = air.radio_socket(port)
        self._raw = air.raw_socket()
        self.sent = 0

    def say(self, data: bytes, source: str = "") -> None:
        with suppress(OSError):
            if source:
                self._raw.sendto(spoofed(source, self._port, data), (EVERYBODY, 0))
            else:
                self.udp.sendto(data, (EVERYBODY, self._port))
        self.sent += 1
        time.sleep(0.002)

    def close(self) -> None:
        self.udp.close()
        self._raw.close()


def _packet(messages: list[Message], seqno: int) -> bytes:
    return wire.encode_packet(seqno & 0xFFFF, messages)


def _befriend(air: Air, voice: Voice, rng: random.Random) -> None:
    """Until the honest nodes take mallory for a neighbour."""
    own = wire.number(air.address[MALLORY])
    others = [wire.number(air.address[node]) for node in HONEST]
    for number in range(6):
        voice.say(_packet([hello_of(own, others)], number))
        air.wait(0.3)


def stolen_routes(air: Air, voice: Voice, rng: random.Random) -> None:
    """The default route, the control network and addresses of the whole world, announced by mallory."""
    own = wire.number(air.address[MALLORY])
    everywhere = [
        (0, 0),
        (wire.number("172.30.0.0"), 0xFFFF0000),
        (wire.number("0.0.0.0"), 0x80000000),
        (wire.number("128.0.0.0"), 0x80000000),
        (wire.number("8.8.8.8"), _FULL),
        (wire.number("172.30.0.1"), _FULL),
        (wire.number("127.0.0.0"), 0xFF000000),
    ]
    strange = [
        wire.number(text) for text in ("8.8.8.8", "172.30.0.1", "192.168.1.1", "127.0.0.1", "224.0.0.1")
    ]
    measured = tuple(wire.Neighbour(each, b"\xff\xff\x00\x00") for each in strange)
    for number in range(8):
        _befriend(air, voice, rng) if number % 4 == 0 else None
        hna = Message(HNA, LONG, own, 255, 0, 100 + number, wire.encode_hna(wire.Hna(tuple(everywhere))))
        tc = Message(
            LQ_TC, LONG, own, 255, 0, 200 + number, wire.encode_tc(wire.Tc(number, 0, 255, measured), LQ_TC)
        )
        mid = Message(MID, LONG, own, 255, 0, 300 + number, wire.encode_mid(wire.Mid(tuple(strange))))
        voice.say(
            _packet(
                [hello_of(own, [*strange, *map(wire.number, air.address.values())]), hna, tc, mid],
                10 + number,
            )
        )
        air.wait(0.3)


def invented_nodes(air: Air, voice: Voice, rng: random.Random) -> None:
    """Thousands of originators that there are not, for an hour each."""
    _befriend(air, voice, rng)
    for number in range(1500):
        messages = []
        for _ in range(6):
            originator = wire.number("10.0.0.0") + rng.randrange(256, 65000)
            neighbours = tuple(wire.Neighbour(rng.getrandbits(32), b"\xff\xff\x00\x00") for _ in range(4))
            body = wire.encode_tc(wire.Tc(1, 0, 255, neighbours), LQ_TC)
            messages.append(Message(LQ_TC, LONG, originator, 255, 0, rng.getrandbits(16), body))
        voice.say(_packet(messages, number))
        if number % 250 == 0:
            _befriend(air, voice, rng)


def stolen_identities(air: Air, voice: Voice, rng: random.Random) -> None:
    """In the honest nodes' names: they have no neighbours, other aliases, and the highest numbers."""
    for number in range(100):
        for node in HONEST:
            other = wire.number(air.address[node])
            silent = Message(
                LQ_TC, LONG, other, 255, 0, 60000 + number, wire.encode_tc(wire.Tc(65000, 0, 255, ()), LQ_TC)
            )
            mid = Message(MID, LONG, other, 255, 0, 61000 + number, wire.encode_mid(wire.Mid((1, 2, 3))))
            voice.say(_packet([silent, mid], number))
            voice.say(_packet([hello_of(other, []), silent], number), source=air.address[node])
            voice.say(_packet([silent], number), source="8.8.8.8")


def fuzzed_olsr(air: Air, voice: Voice, rng: random.Random) -> None:
    captured = payloads("etx_ff") + payloads("rfc")
    own = wire.number(air.address[MALLORY])
    _befriend(air, voice, rng)
    for number in range(2500):
        if number % 3:
            data = _packet([lie(rng, own) for _ in range(rng.choice((1, 2, 4)))], number)
        else:
            data = changed_bytes(captured, rng)
            data = len(data).to_bytes(2, "big") + data[2:]
        source = rng.choice(("", "", air.address[rng.choice(HONEST)], "8.8.8.8", "0.0.0.0", "127.0.0.1"))
        voice.say(data[:1400], source)


def replayed_packets(air: Air, voice: Voice, rng: random.Random) -> None:
    """All that the air carried, again and in others' names."""
    heard: list[tuple[bytes, str]] = []
    for _ in range(20):
        air.wait(0.2)
        with suppress(BlockingIOError):
            while True:
                data, (source, _) = voice.udp.recvfrom(65535)
                heard.append((data, source))
    for data, source in heard * 5:
        voice.say(data)
        voice.say(data, source)


def fuzzed_aodv(air: Air, voice: Voice, rng: random.Random) -> None:
    def number() -> int:
        return rng.choice((0, 1, 2**32 - 1, rng.getrandbits(32)))

    def address() -> int:
        known = [*air.address.values(), "8.8.8.8", "172.30.0.1", "255.255.255.255", "127.0.0.1", "0.0.0.0"]
        return aodv.number(rng.choice(known)) if rng.random() < 0.7 else rng.getrandbits(32)

    for _ in range(2500):
        sound: tuple[aodv.Message, ...] = (
            aodv.Request(number(), rng.randrange(256), address(), None, address(), number()),
            aodv.Reply(rng.randrange(256), address(), number(), address(), number(), True),
            aodv.Reply(
                0, aodv.number(air.address[MALLORY]), number(), aodv.number(air.address[MALLORY]), number()
            ),
            aodv.Error(tuple(aodv.Broken(address(), number()) for _ in range(rng.choice((1, 200))))),
        )
        data = aodv.encode(rng.choice(sound))
        source = rng.choice(("", "", air.address[rng.choice(HONEST)], "8.8.8.8"))
        voice.say(changed_bytes((data,), rng)[:1400] if rng.random() < 0.4 else data, source)


def query_servers(air: Air, voice: Voice, rng: random.Random) -> None:
    """Clients on the node that are many, slow, or say anything."""
    for port in QUERY_PORTS:
        with ExitStack() as held:
            for _ in range(40):
                with suppress(OSError):
                    slow = held.enter_context(air.local("n1", port))
                    slow.sendall(b"G")
                    voice.sent += 1
            air.wait(0.5)
        for _ in range(60):
            with suppress(OSError), air.local("n1", port) as client:
                client.sendall(changed_bytes((b"GET /all HTTP/1.0\r\n\r\n", b"/topology\n"), rng))
                client.shutdown(socket.SHUT_WR)
                voice.sent += 1
    air.wait(7.0)


class RoutingAttack(NamedTuple):
    name: str
    role: str
    module: str
    run: Callable[[Air, Voice, random.Random], None]


OLSR, AODV = "node_agent.olsr.process", "node_agent.aodv.process"
ATTACKS = (
    RoutingAttack("olsr_stolen_routes", NODE, OLSR, stolen_routes),
    RoutingAttack("olsr_fuzzed", STRANGER, OLSR, fuzzed_olsr),
    RoutingAttack("olsr_replayed", STRANGER, OLSR, replayed_packets),
    RoutingAttack("olsr_stolen_identities", STRANGER, OLSR, stolen_identities),
    RoutingAttack("olsr_query_servers", STRANGER, OLSR, query_servers),
    RoutingAttack("olsr_invented_nodes", STRANGER, OLSR, invented_nodes),
    RoutingAttack("aodv_fuzzed", STRANGER, AODV, fuzzed_aodv),
)


def besiege_routing(seed: int, seconds: float, only: Collection[str], tell: Tell) -> Besieged:
    """Daemons in namespaces; nothing where this machine does not permit that."""
    found = Besieged()
    if reason := lacking():
        tell(f"no attacks on routing daemons: {reason}")
        return found
    end = time.monotonic() + seconds
    for module, config, port in (
        (OLSR, {"interfaces": ["wlan0"], "olsr": FAST}, OLSR_PORT),
        (AODV, {"interface": "wlan0"}, AODV_PORT),
    ):
        chosen = [each for each in ATTACKS if each.module == module and (not only or each.name in only)]
        if chosen and time.monotonic() < end:
            with daemons(module, config) as air:
                _besiege(air, chosen, port, seed, end, found, tell)
    return found


def _besiege(
    air: Air,
    attacks: list[RoutingAttack],
    port: int,
    seed: int,
    end: float,
    found: Besieged,
    tell: Tell,
) -> None:
    proactive = port == OLSR_PORT
    if proactive and not air.until(air.complete, CONVERGED_S):
        raise RuntimeError("routing does not converge even before the siege")
    air.wait(3.0)
    before = {node: air.outside_routes(node) for node in HONEST}
    warm, descriptors = air.resident_mb(), air.descriptors()
    voice = Voice(air, port)
    try:
        for attack in attacks:
            if time.monotonic() > end:
                break
            already = voice.sent
            attack.run(air, voice, random.Random(f"{seed} {attack.name}"))
            found.attacks += 1
            found.messages += voice.sent - already
            air.wait(1.5)
            _check(air, attack.name, before, proactive, found)
            if air.ended():
                return
            tell(
                f"{attack.name:<24}{voice.sent - already:>6} packets  {air.resident_mb():6.1f} MB  "
                f"{air.descriptors():>4} descriptors  routes {len(air.routes('n1'))}"
            )
    finally:
        voice.close()
    grown = air.resident_mb() - warm
    found.rss_growth_mb = max(found.rss_growth_mb, round(grown, 1))
    found.descriptors_growth = max(found.descriptors_growth, air.descriptors() - descriptors)
    if grown > MOST_MEGABYTES or found.descriptors_growth > MOST_DESCRIPTORS:
        found.outgrown += 1
        found.trouble.append(
            f"growth: a daemon grew by {grown:.0f} MB, {found.descriptors_growth} descriptors"
        )


def _check(
    air: Air, name: str, before: dict[str, set[tuple[str, str, str]]], proactive: bool, found: Besieged
) -> None:
    for node in air.ended():
        found.agents_ended += 1
        found.trouble.append(f"{name}: the daemon of {node} ended: {air.log(node).read_text()[-300:]}")
    if air.ended():
        return
    for node in HONEST:
        stolen = air.outside_routes(node) - before[node]
        lost = before[node] - air.outside_routes(node)
        if stolen or lost:
            found.forged_accepted += len(stolen) + len(lost)
            found.trouble.append(
                f"{name}: routes of {node} to elsewhere changed: +{sorted(stolen)[:4]} -{sorted(lost)[:4]}"
            )
    if proactive and not air.until(air.complete, CONVERGED_S):
        found.stalled += 1
        found.trouble.append(f"{name}: honest nodes do not know each other any more")
