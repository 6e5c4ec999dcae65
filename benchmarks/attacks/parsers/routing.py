"""Packets of OLSR, AODV and the prober from neighbours that lie, and requests to the query servers."""

import hashlib
import random
from pathlib import Path

from benchmarks.attacks.mutation import changed_bytes, changed_message, plain
from benchmarks.attacks.parser import Forged
from benchmarks.shared.olsr_captures import payloads
from node_agent.aodv import wire as aodv_wire
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.core import Aodv
from node_agent.linkstate.probe.core import ProbeConfig, ProbeCore
from node_agent.linkstate.probe.messages import Estimate, Known, Probe, Reply, encode
from node_agent.linkstate.probe.tags import Tags
from node_agent.manet.membership import manet_of
from node_agent.manet.seal import Seal, Unsealed
from node_agent.model.refusals import Refusals
from node_agent.olsr import sealed, wire
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface, Olsr
from node_agent.olsr.info.jsoninfo import JSONINFO
from node_agent.olsr.info.netjson import NETJSON
from node_agent.olsr.info.request import answer, parse
from node_agent.olsr.info.snapshot import Snapshot
from node_agent.olsr.info.txtinfo import TXTINFO
from node_agent.olsr.wire import HELLO, HNA, LQ_HELLO, LQ_TC, MID, TC, Message

OWN = wire.number("10.77.0.1")
NETWORK = wire.number("10.77.0.0")
MANET = manet_of(("10.77.0.0/16",))
SECOND = 1_000_000_000
_SYMMETRIC = 2 | 1 << 2
_GOOD = b"\xff\xff\x00\x00"


def any_address(rng: random.Random) -> int:
    """Returns an address, mostly of the network."""
    if rng.random() < 0.7:
        return NETWORK + rng.randrange(1, 250)
    return rng.choice((0, 1, 0x7F000001, 0xFFFFFFFF, 0xE0000001, 0xC0A80001, OWN, rng.getrandbits(32)))


def hello_of(sender: int, listed: list[int], htime: int = 0x86) -> Message:
    group = wire.Group(_SYMMETRIC, tuple(wire.Neighbour(each, _GOOD) for each in listed))
    body = wire.encode_hello(wire.Hello(htime, 7, (group,)), LQ_HELLO)
    return Message(LQ_HELLO, htime, sender, 1, 0, 1, body)


def lie(rng: random.Random, sender: int) -> Message:
    """Returns a sound message with false content."""
    kind = rng.choice((LQ_HELLO, LQ_TC, LQ_TC, MID, HNA, HELLO, TC, rng.randrange(256)))
    addresses = [any_address(rng) for _ in range(rng.choice((0, 1, 2, 5, 40)))]
    measured = [wire.Neighbour(each, rng.randbytes(4)) for each in addresses]
    bare = [wire.Neighbour(each, b"") for each in addresses]
    time = rng.randrange(256)
    match kind:
        case wire.LQ_HELLO:
            groups = tuple(wire.Group(rng.randrange(16), tuple(measured)) for _ in range(rng.choice((1, 2))))
            body = wire.encode_hello(wire.Hello(time, rng.randrange(256), groups), kind)
        case wire.HELLO:
            body = wire.encode_hello(wire.Hello(time, 7, (wire.Group(_SYMMETRIC, tuple(bare)),)), kind)
        case wire.LQ_TC:
            borders = rng.randrange(256), rng.randrange(256)
            body = wire.encode_tc(wire.Tc(rng.getrandbits(16), *borders, tuple(measured)), kind)
        case wire.TC:
            body = wire.encode_tc(wire.Tc(rng.getrandbits(16), 0, 0, tuple(bare)), kind)
        case wire.MID:
            body = wire.encode_mid(wire.Mid(tuple(addresses)))
        case wire.HNA:
            lengths = [rng.choice((0, 1, 8, 24, 32)) for _ in addresses]
            masks = [(0xFFFFFFFF << 32 - length) & 0xFFFFFFFF for length in lengths]
            body = wire.encode_hna(wire.Hna(tuple(zip(addresses, masks, strict=True))))
        case _:
            body = rng.randbytes(rng.randrange(64))
    originator = sender if rng.random() < 0.4 else any_address(rng)
    return Message(kind, time, originator, rng.randrange(256), rng.randrange(256), rng.getrandbits(16), body)


class OlsrPackets:
    """Two symmetric neighbours and strangers send to one daemon, whose clock advances."""

    def __init__(self, directory: Path) -> None:
        self.daemon = Olsr(OlsrConfig(), [Interface("wlan0", OWN)], random.Random(1), 0, MANET)
        self.now = 0
        self._seqno = 0
        self._captured = payloads("etx_ff") + payloads("rfc")
        self._meet()

    def _meet(self) -> None:
        for neighbour in (NETWORK + 2, NETWORK + 3):
            for _ in range(3):
                self._seqno += 1
                packet = wire.encode_packet(self._seqno & 0xFFFF, [hello_of(neighbour, [OWN])])
                self.daemon.receive(packet, 0, neighbour, self.now)

    def draw(self, rng: random.Random) -> tuple[bytes, int]:
        sender = rng.choice((NETWORK + 2, NETWORK + 2, NETWORK + 3, any_address(rng)))
        choice = rng.random()
        if choice < 0.3:
            data = changed_bytes(self._captured, rng)[:1472]
            if rng.random() < 0.6 and len(data) > 2:
                data = len(data).to_bytes(2, "big") + data[2:]
        else:
            messages = [lie(rng, sender) for _ in range(rng.choice((1, 1, 2, 3)))]
            data = wire.encode_packet(rng.getrandbits(16), messages)
            if choice > 0.8:
                data = changed_bytes((data,), rng)
        return data, sender

    def feed(self, message: tuple[bytes, int]) -> None:
        self.daemon.receive(message[0], 0, message[1], self.now)
        self.now += SECOND // 50
        if self.now % SECOND == 0:
            self._meet()
            self.daemon.wake(self.now)
            routes = self.daemon.current_routes(self.now)
            outside = [to for to in routes.hosts() if not MANET.belongs(to)]
            if outside or routes.nets():
                raise Forged(
                    f"routes to {[wire.dotted(to) for to in outside[:5]]} and {list(routes.nets())[:5]}"
                )

    def close(self) -> None:
        pass


class InfoRequests:
    """Requests to the query servers of a daemon that has heard lies."""

    def __init__(self, directory: Path) -> None:
        olsr = OlsrPackets(directory)
        rng = random.Random(2)
        for _ in range(200):
            olsr.feed(olsr.draw(rng))
        view = olsr.daemon.view(olsr.now)
        self._snapshot = Snapshot(view, OlsrConfig(), {}, {}, tuple(Refusals()), "siege", 1, 1)
        paths = ("", "/", "/all", "/topology/neighbors", "/http/links", "/plain/routes", "/version", "/no")
        self._sound = tuple(f"GET {path} HTTP/1.0\r\n\r\n".encode() for path in paths)

    def draw(self, rng: random.Random) -> tuple[int, bytes]:
        return rng.randrange(3), changed_bytes(self._sound, rng)

    def feed(self, message: tuple[int, bytes]) -> None:
        dialect = (JSONINFO, TXTINFO, NETJSON)[message[0]]
        answer(dialect, parse(message[1]), lambda: self._snapshot)

    def close(self) -> None:
        pass


class SealedPackets:
    """Packets that were sealed once: changed, repeated, from other addresses, and out of another run."""

    def __init__(self, directory: Path) -> None:
        self._clock = 1_700_000_000 * SECOND
        self._receiver = Seal(b"key of the group", "olsr", lambda: self._clock)
        self._taken: set[bytes] = set()

    def draw(self, rng: random.Random) -> tuple[bytes, int]:
        sender = NETWORK + rng.randrange(1, 6)
        packet = wire.encode_packet(rng.getrandbits(16), [lie(rng, sender)])
        key = rng.choice((b"key of the group", b"key of the group", b"key of another"))
        seal = Seal(
            key, rng.choice(("olsr", "olsr", "aodv")), lambda: self._clock + rng.choice((0, -60, 5)) * SECOND
        )
        data = sealed.seal_packet(seal, packet, sender)
        if rng.random() < 0.5:
            data = changed_bytes((data,), rng)
        return data, sender if rng.random() < 0.8 else NETWORK + rng.randrange(1, 6)

    def feed(self, message: tuple[bytes, int]) -> None:
        data, sender = message
        self._clock += SECOND // 50
        for _ in range(2):
            try:
                sealed.open_packet(self._receiver, data, sender)
            except Unsealed:
                continue
            seen = hashlib.sha256(data).digest()
            if seen in self._taken:
                raise Forged("a packet was taken twice")
            self._taken.add(seen)

    def close(self) -> None:
        pass


class AodvPackets:
    def __init__(self, directory: Path) -> None:
        config = AodvConfig(detection="hello")
        self._core = Aodv[bytes](config, OWN, random.Random(1), 0)
        self._now = 0

    def draw(self, rng: random.Random) -> tuple[bytes, int, int]:
        def number() -> int:
            return rng.choice((0, 1, 2**31, 2**32 - 1, rng.getrandbits(32)))

        def address() -> int:
            return any_address(rng) & 0xFFFFFFFF

        hops = rng.randrange(256)
        asked = rng.choice((OWN, address()))
        broken = tuple(aodv_wire.Broken(address(), number()) for _ in range(rng.choice((1, 3, 255))))
        sound: tuple[aodv_wire.Message, ...] = (
            aodv_wire.Request(number(), hops, address(), rng.choice((None, number())), address(), number()),
            aodv_wire.Request(number(), hops, OWN, None, address(), number(), True, True),
            aodv_wire.Reply(hops, address(), number(), asked, number(), rng.random() < 0.5),
            aodv_wire.Reply(hops, NETWORK + 2, number(), NETWORK + 2, number()),
            aodv_wire.Error(broken),
            aodv_wire.Acknowledgement(),
        )
        data = aodv_wire.encode(rng.choice(sound))
        if rng.random() < 0.4:
            data = changed_bytes((data,), rng)
        return data, address(), rng.randrange(256)

    def feed(self, message: tuple[bytes, int, int]) -> None:
        data, sender, ttl = message
        self._core.receive(data, sender, ttl, self._now)
        self._now += SECOND // 200
        if self._now % (SECOND // 4) == 0:
            self._core.wake(self._now)
            self._core.originate(b"packet", NETWORK + 9, self._now)
            for route in self._core.valid_routes(self._now):
                self._core.next_hop(route.destination, OWN, None, self._now)

    def close(self) -> None:
        pass


class Probes:
    """Probes and replies of strangers under any address, and of two nodes that lie under their own keys.

    However many there were, a third node that begins to probe must be answered.
    """

    def __init__(self, directory: Path) -> None:
        self._own = "10.77.0.1"
        self._keys = {f"10.77.0.{number}": bytes([number]) * 32 for number in (2, 3, 4)}
        self._core = ProbeCore(ProbeConfig(), self._own, ["10.77.0.2", "10.77.0.3"], 7, 0, self._keys)
        self._now = SECOND
        self._probes = 0
        known = (Known("10.77.0.3", 5, {"10.77.0.2": Estimate(0.9, 0.8, 0.01, 1e6)}),)
        self._sound = tuple(
            plain(each)
            for each in (
                Probe(9, 1, 100, 0, b"x" * 40),
                Probe(9, 2, 100, 1, bytes(940)),
                Probe(9, 3, 100, 2, bytes(940)),
                Reply(7, 3, 1, 100, 0, 1, 1, 1, 1, None),
                Reply(7, 3, 2, 100, 2, 2, 2, 10, 9, 1000, known),
            )
        )

    def draw(self, rng: random.Random) -> tuple[bytes, str]:
        data = changed_message(self._sound, "msgpack", rng)
        sender = rng.choice(("10.77.0.2", "10.77.0.2", "10.77.0.3", f"10.77.{rng.randrange(256)}.9"))
        if sender in self._keys and rng.random() < 0.8:
            return Tags(sender, {self._own: self._keys[sender]}).add(data, self._own), sender
        return data, sender

    def feed(self, message: tuple[bytes, str]) -> None:
        self._core.receive(*message, self._now)
        self._now += SECOND // 100
        self._core.wake(self._now)
        if self._now % SECOND == 0:
            self._core.reading(self._now)
            self._probes += 1
            honest = Tags("10.77.0.4", {self._own: self._keys["10.77.0.4"]})
            probe = honest.add(encode(Probe(5, self._probes, self._now, 0, b"x" * 60)), self._own)
            if self._core.receive(probe, "10.77.0.4", self._now) is None:
                raise Forged("an honest node is not answered any more")

    def close(self) -> None:
        pass
