"""Attacks on routing daemons: a neighbour on the radio lies, floods, replays, and speaks in others' names."""

import random
import socket
import time
from contextlib import ExitStack, suppress

from benchmarks.attacks.live.airs import EVERYBODY, HONEST, MALLORY, Air, spoofed
from benchmarks.attacks.mutation import changed_bytes
from benchmarks.attacks.parsers.routing import hello_of, lie
from benchmarks.shared.olsr_captures import payloads
from node_agent.aodv import wire as aodv
from node_agent.olsr import wire
from node_agent.olsr.wire import HNA, LQ_TC, MID, Message

LONG = 0xFF
"""The longest validity that a message can claim: 3,968 s."""
_FULL = 0xFFFFFFFF


class Voice:
    """Sends mallory's packets over the radio: numbered, and no faster than the channel allows."""

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
    """Sends until the honest nodes take mallory for a neighbour."""
    own = wire.number(air.address[MALLORY])
    others = [wire.number(air.address[node]) for node in HONEST]
    for number in range(6):
        voice.say(_packet([hello_of(own, others)], number))
        air.wait(0.3)


def stolen_routes(air: Air, voice: Voice, rng: random.Random) -> None:
    """Announces the default route, the control network and addresses of the whole internet."""
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
    """Announces thousands of originators that do not exist, for an hour each."""
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
    """Speaks in the honest nodes' names: they have no neighbours, other aliases, and the highest numbers."""
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
    """Sends everything again that was on the radio, also in others' names."""
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
    """Attacks query servers with clients on the node that are many, slow, or send random requests."""
    for port in air.query_ports:
        with ExitStack() as held:
            for _ in range(40):
                with suppress(OSError):
                    slow = held.enter_context(air.local("n1", port))
                    slow.sendall(b"G")
                    voice.sent += 1
            air.wait(0.5)
        for _ in range(60):
            with suppress(OSError), air.local("n1", port) as client:
                sound = (
                    b"GET /all HTTP/1.0\r\n\r\n",
                    b"/topology\n",
                    b"GET /routes/10.0.0.9 HTTP/1.0\r\n\r\n",
                )
                client.sendall(changed_bytes(sound, rng))
                client.shutdown(socket.SHUT_WR)
                voice.sent += 1
    air.wait(7.0)
