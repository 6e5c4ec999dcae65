"""Attacks of a malicious node, which holds its own keys and uses them as no agent of ours would."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from benchmarks.attacks.live.network import (
    AGENTS,
    HONEST,
    MALLORY,
    PORT,
    PROBE_PORT,
    SINK,
    SOURCE,
    LiveNetwork,
)
from benchmarks.attacks.mutation import changed_message, encoded, plain
from benchmarks.attacks.parser import Forged
from benchmarks.attacks.speaking import NONCE_SIZE, Refused, Session, frame, notice_packet
from node_agent.linkstate.probe.core import ProbeConfig, ProbeCore
from node_agent.linkstate.probe.messages import Estimate, Known, Probe, Reply
from node_agent.linkstate.probe.tags import Tags
from node_agent.ports import Address, PortError, Stream
from node_agent.ports.os_port import OsPort
from node_agent.transport.messages import Pair

OWN: tuple[tuple[str, Pair], ...] = (
    (HONEST, Pair("spy/0", "op/0")),
    (SINK, Pair("side/1", "drain/0")),
    (HONEST, Pair("side/1", "side/0")),
)
"""The connections that mallory may open, and to whom."""
BIG = 2**62
MOMENT_S = 0.002


def item(tau: int, payload: bytes = b"spied 1", origin: str = "spy/0") -> list[Any]:
    return [origin, tau, tau - 1, tau * 1000, (tau - 1) * 1000, [payload] if payload else [], False]


def frames_of(rng: random.Random) -> list[Any]:
    base = rng.randrange(1, 2000)
    stream = rng.choice(("spy/0", "spy/0", "camera/0", "side", "op"))
    forged = b"0 forged"
    return [
        ["data", [item(base + n, forged, "camera/0") for n in range(3)], [], {}, None],
        ["data", [item(base + n) for n in range(3)], [], {"camera/0": BIG, "spy/0": base}, None],
        ["settled", {"camera/0": BIG}, [[*item(BIG, b"", "camera/0")[:6], True]]],
        ["acknowledgement", {"camera/0": [[1, BIG]]}, {"camera/0": [[1, BIG]]}],
        ["alive", rng.randrange(100)],
        ["data", [item(base + n) for n in range(rng.randrange(1, 30))], [], {}, None],
        ["data", [item(BIG)], [], {stream: BIG}, None],
        ["data", [item(base, b"")], [[0, 5000, bytes(32)]], {}, None],
        ["data", [item(base)], [], {}, ["op/0", [[1, BIG]]]],
        ["settled", {stream: BIG}, []],
        ["settled", {}, [[*item(base, b"")[:6], True]]],
        ["acknowledgement", {stream: [[n, n] for n in range(1, 5000, 2)]}, {}],
        ["ask"],
    ]


@asynccontextmanager
async def session(net: LiveNetwork, to: str, pair: Pair, rng: random.Random) -> Any:
    """Opens a connection of mallory's that the other end has welcomed. Raises Refused or PortError."""
    port = OsPort(net.hosts[MALLORY])
    stream = await port.connect(Address(*net.address(to)), 3.0)
    try:
        async with asyncio.timeout(5.0):
            made = await net.mallory.open(stream, to, pair, rng.randbytes(NONCE_SIZE))
        stream.put(frame(encoded(["alive", 0], "msgpack"), made.sending))
        yield stream, made
    finally:
        stream.abort()


async def fuzzed_frames(net: LiveNetwork, rng: random.Random) -> int:
    """Sends every message type with random content, as its own replicas."""
    count = 0
    for _ in range(400):
        with suppress(PortError, Refused, TimeoutError):
            async with session(net, *rng.choice(OWN), rng) as (stream, made):
                for number in range(3):
                    sound = encoded(rng.choice(frames_of(rng)), "msgpack")
                    said = changed_message(frames_of(rng), "msgpack", rng) if number == 2 else sound
                    stream.put(frame(said, made.sending))
                    count += 1
                    await asyncio.sleep(MOMENT_S)
    return count


async def impersonation(net: LiveNetwork, rng: random.Random) -> int:
    """Speaks as other nodes' replicas. Raises Forged if a node accepts that."""
    tried = (
        (SINK, Pair("op/0", "screen/0")),
        (HONEST, Pair("camera/0", "op/0")),
        (SINK, Pair("screen/0", "screen/0")),
        (SINK, Pair("camera/0", "screen/0")),
        (HONEST, Pair("op/0", "op/0")),
        (SOURCE, Pair("side/1", "camera/0")),
        (SINK, Pair("op/7", "screen/0")),
        (SINK, Pair("side/1", "screen/0")),
        (SINK, Pair("side/0", "drain/0")),
        (HONEST, Pair("spy/0", "side/0")),
        (HONEST, Pair("", "op/0")),
    )
    for to, pair in tried:
        welcomed = False
        with suppress(PortError, Refused, TimeoutError):
            async with session(net, to, pair, rng):
                welcomed = True
        if welcomed:
            raise Forged(f"{to} welcomed mallory as {pair.sender}")
    return len(tried)


async def forged_tuples(net: LiveNetwork, rng: random.Random) -> int:
    """Sends invented tuples, passed on in others' names, within what mallory may do."""
    count = 0
    for to, pair in OWN:
        for passed_on in (None, ["op/0", []], ["camera/0", []], ["screen/0", []]):
            with suppress(PortError, Refused, TimeoutError):
                async with session(net, to, pair, rng) as (stream, made):
                    for origin in ("camera/0", "op/0", "nobody/1"):
                        items = [item(10**7 + n, b"0 forged", origin) for n in range(3)]
                        stream.put(
                            frame(encoded(["data", items, [], {}, passed_on], "msgpack"), made.sending)
                        )
                        count += 1
                        await asyncio.sleep(MOMENT_S)
    return count


async def no_credit(net: LiveNetwork, rng: random.Random) -> int:
    """Sends more than the receiver allows, without waiting."""
    count = 0
    for number in range(20):
        with suppress(PortError, Refused, TimeoutError):
            async with session(net, *OWN[number % 2], rng) as (stream, made):
                for start in range(0, 4000, 200):
                    items = [item(10**8 + start + n, b"spied " + bytes(500)) for n in range(200)]
                    stream.put(frame(encoded(["data", items, [], {}, None], "msgpack"), made.sending))
                    count += 1
                await asyncio.sleep(0.05)
    return count


async def too_much_to_pass_on(net: LiveNetwork, rng: random.Random) -> int:
    """Sends tuples that are small enough to arrive, but too large, or of too many parts, to be sent on."""
    count = 0
    for number in range(40):
        with suppress(PortError, Refused, TimeoutError):
            async with session(net, *OWN[0], rng) as (stream, made):
                tau = 1 + 2 * number
                parts = [b"spied " + b"x" * rng.choice((0, 40))] * rng.choice((1_000, 5_000, 8_192, 40_000))
                held = [[*item(tau + n, b"")[:5], parts, False] for n in range(rng.choice((1, 2)))]
                stream.put(frame(encoded(["data", held, [], {}, None], "msgpack")[:1_048_576], made.sending))
                count += 1
                await asyncio.sleep(0.1)
    return count


async def never_reads(net: LiveNetwork, rng: random.Random) -> int:
    """Opens connections that ask for much and never read an answer."""
    held: list[tuple[Any, Stream]] = []
    for _ in range(20):
        with suppress(PortError, Refused, TimeoutError):
            context = session(net, *rng.choice(OWN), rng)
            stream, made = await context.__aenter__()
            held.append((context, stream))
            for _ in range(200):
                stream.put(frame(encoded(["alive", 0], "msgpack"), made.sending))
    await asyncio.sleep(3.0)
    for context, _ in held:
        with suppress(PortError, Refused, TimeoutError):
            await context.__aexit__(None, None, None)
    return 200 * len(held)


async def notices_about_others(net: LiveNetwork, rng: random.Random) -> int:
    """Sends costs of other nodes' replicas, and impossible ones of its own."""
    loop = asyncio.get_running_loop()
    heard: dict[str, bytes] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(net.address(MALLORY))
        udp.setblocking(False)
        deadline = loop.time() + 3.0
        names = {host: node for node, host in net.hosts.items()}
        while loop.time() < deadline and len(heard) < 2:
            with suppress(BlockingIOError):
                data, (host, _) = udp.recvfrom(65535)
                if epoch := net.mallory.epoch_in(data):
                    heard[names[host]] = epoch
            await asyncio.sleep(0.01)
        count = 0
        for node in (SOURCE, HONEST, SINK):
            epoch = heard.get(node, b"unknown!")
            for number in range(300):
                sender = rng.choice(("op/0", "side/1", "spy/0", "screen/0", "camera/0"))
                cost = rng.choice((0.0, -1.0, 1e300, float("nan"), float("inf"), 3.0))
                update = [
                    "cost_update",
                    sender,
                    BIG,
                    rng.choice((number, 2**53, BIG, 2**63)),
                    cost,
                    0,
                    None,
                    "side/1",
                ]
                report = ["cost_report", sender, 1, number, cost, "side/1"]
                to = rng.choice(("camera/0", "op/0", "side/0", "screen/0"))
                packet = notice_packet(epoch, [[to, rng.choice((update, report))]] * rng.choice((1, 1, 20)))
                data = encoded(packet, "msgpack") if number % 2 else changed_message([packet], "msgpack", rng)
                udp.sendto(net.mallory.datagram(node, data)[:60_000], net.address(node))
                count += 1
            await asyncio.sleep(0.05)
    return count


Answer = Callable[[Stream, Session, random.Random], Awaitable[int]]


async def _swallow(stream: Stream, made: Session, rng: random.Random) -> int:
    """Takes everything and acknowledges nothing."""
    with suppress(PortError):
        while True:
            await stream.read_exactly(1)
    return 0


async def _acknowledge_all(stream: Stream, made: Session, rng: random.Random) -> int:
    """Acknowledges everything, including what was sent to others."""
    count = 0
    with suppress(PortError):
        for _ in range(50):
            for said in (
                ["acknowledgement", {"camera/0": [[1, BIG]]}, {"camera/0": [[1, BIG]]}],
                ["acknowledgement", {"camera/0": [[10**6, 10**6 + 5]]}, {}],
                ["alive", BIG],
            ):
                stream.put(frame(encoded(said, "msgpack"), made.sending))
                count += 1
            await asyncio.sleep(0.02)
    return count


async def _garbage(stream: Stream, made: Session, rng: random.Random) -> int:
    count = 0
    with suppress(PortError):
        for _ in range(20):
            stream.put(frame(changed_message(frames_of(rng), "msgpack", rng), made.sending))
            count += 1
            await asyncio.sleep(MOMENT_S)
    return count


def as_receiver(
    answer: Answer, seconds: float = 4.0
) -> Callable[[LiveNetwork, random.Random], Awaitable[int]]:
    """Claims to be near, so that the source sends to mallory's replica; ``answer`` handles what arrives."""

    async def attack(net: LiveNetwork, rng: random.Random) -> int:
        port = OsPort(net.hosts[MALLORY])
        count = 0

        async def serve(stream: Stream) -> None:
            nonlocal count
            with suppress(PortError, Refused):
                made = await net.mallory.accept(stream, rng.randbytes(NONCE_SIZE))
                count += 1 + await answer(stream, made, rng)

        keys = net.mallory.keys_by(net.hosts)
        core = ProbeCore(ProbeConfig(), net.hosts[MALLORY], [], rng.getrandbits(32), 0, keys)
        loop = asyncio.get_running_loop()
        udp = await port.datagrams(
            PROBE_PORT,
            lambda data, sender: _reply(core, udp, data, sender, round(loop.time() * 1e9)),
        )
        listener = await port.listen(PORT, serve)
        try:
            await asyncio.sleep(seconds)
        finally:
            listener.close()
            udp.close()
        return count

    return attack


async def lying_probes(net: LiveNetwork, rng: random.Random) -> int:
    """Sends probes under mallory's own tags:
    random ones, and claims that all others can hardly be reached.
    """
    tags = Tags(net.hosts[MALLORY], net.mallory.keys_by(net.hosts))
    far = {host: Estimate(0.001, 0.001, 1e9, 0.0) for host in net.hosts.values()}
    known = tuple(Known(host, 0, far) for host in net.hosts.values())
    count = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((net.hosts[MALLORY], PROBE_PORT))
        for number in range(1, 600):
            for node in AGENTS:
                sound = [
                    plain(Probe(rng.getrandbits(32), number, 0, number % 3, bytes(900))),
                    plain(Reply(rng.getrandbits(32), 1, number, 0, 0, number, number, 10, 10, None, known)),
                ]
                data = changed_message(sound, "msgpack", rng) if number % 2 else encoded(sound[0], "msgpack")
                udp.sendto(tags.add(data[:60_000], net.hosts[node]), (net.hosts[node], PROBE_PORT))
                count += 1
            await asyncio.sleep(MOMENT_S)
    return count


def _reply(core: ProbeCore, udp: Any, data: bytes, sender: Address, now_ns: int) -> None:
    if (outgoing := core.receive(data, sender.host, now_ns)) is not None:
        udp.send(outgoing.data, Address(outgoing.to, sender.port))


swallow, acknowledge_all, garbage = _swallow, _acknowledge_all, _garbage
