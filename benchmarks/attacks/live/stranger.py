"""Attacks of a stranger without a key: it sends anything, from any address, and replays all it heard."""

import asyncio
import random
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import msgspec

from benchmarks.attacks.live.network import (
    AGENTS,
    HONEST,
    MALLORY,
    NODES,
    PORT,
    PROBE_PORT,
    SINK,
    SOURCE,
    LiveNetwork,
)
from benchmarks.attacks.live.recording import Heard, Recorder
from benchmarks.attacks.mutation import changed_bytes, changed_message, deep, encoded, plain
from benchmarks.attacks.speaking import ID_SIZE, Speaker, greeting
from node_agent.linkstate.probe.messages import Estimate, Known, Probe, Reply
from node_agent.transport.authentication import Seal
from node_agent.transport.messages import Pair

CONNECT_S = 3.0
_RESET = struct.pack("ii", 1, 0)
NONCE = bytes(16)
PAIR = Pair("camera/0", "op/0")


@contextmanager
def connected(to: tuple[str, int], source: str = "") -> Iterator[socket.socket]:
    """Connects from ``source``, any address of the loopback device."""
    with socket.socket() as connection:
        connection.settimeout(CONNECT_S)
        if source:
            connection.bind((source, 0))
        connection.connect(to)
        yield connection


def say(to: tuple[str, int], data: bytes, source: str = "", listen_s: float = 0.0) -> bytes:
    """Connects, sends, hangs up; returns what was answered within ``listen_s`` seconds."""
    with suppress(OSError), connected(to, source) as connection:
        connection.sendall(data)
        if listen_s:
            connection.settimeout(listen_s)
            with suppress(TimeoutError):
                return connection.recv(65536)
    return b""


def send_datagrams(to: tuple[str, int], datas: Iterable[bytes], source: str = "") -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        if source:
            udp.bind((source, 0))
        count = 0
        for data in datas:
            with suppress(OSError):
                udp.sendto(data[:60_000], to)
                count += 1
            if count % 100 == 0:
                time.sleep(0.005)  # otherwise the kernel drops most of them
        return count


def flood_of_connections(net: LiveNetwork, rng: random.Random) -> int:
    """Opens hundreds at once, from its own addresses and from those of the agents."""
    sources = ["", *net.hosts.values(), *(f"127.99.{rng.randrange(250)}.{n}" for n in range(1, 60))]
    count = 0
    with ExitStack() as held:
        for number in range(600):
            connection = held.enter_context(socket.socket())
            connection.setblocking(False)
            with suppress(OSError):
                connection.bind((rng.choice(sources) or "127.0.0.1", 0))
            connection.connect_ex(net.address(rng.choice(AGENTS)))
            count += 1
            if number % 50 == 0:
                time.sleep(0.05)
        time.sleep(2.0)
    return count


def connect_and_reset(net: LiveNetwork, rng: random.Random) -> int:
    for number in range(3000):
        with suppress(OSError), connected(net.address(AGENTS[number % 3])) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            if number % 2:
                connection.sendall(rng.randbytes(rng.choice((1, 4, 50, 5000))))
    return 3000


def slow_greetings(net: LiveNetwork, rng: random.Random) -> int:
    """Sends a byte now and then, over many connections, also from the agents' addresses."""
    hello = Speaker(MALLORY, NODES, secret=bytes(32)).hello(HONEST, PAIR, NONCE)
    count = 0
    with ExitStack() as held:
        open_ones = []
        for number in range(60):
            source = rng.choice(["", net.hosts[SOURCE], net.hosts[SINK]])
            with suppress(OSError):
                open_ones.append(held.enter_context(connected(net.address(AGENTS[number % 3]), source)))
        for place in range(8):
            for connection in open_ones:
                with suppress(OSError):
                    connection.sendall(hello[place : place + 1])
                    count += 1
            time.sleep(0.5)
    return count


def half_frames(net: LiveNetwork, rng: random.Random) -> int:
    """Sends lengths that announce much, and nothing after them."""
    with ExitStack() as held:
        for number in range(120):
            with suppress(OSError):
                connection = held.enter_context(connected(net.address(AGENTS[number % 3])))
                size = rng.choice((1, 1023, 1024, 65535, 2**20, 2**24, 2**31, 2**32 - 1))
                connection.sendall(size.to_bytes(4, "big") + rng.randbytes(rng.choice((0, 16, 40, 4000))))
        time.sleep(1.0)
    return 120


def much_without_a_key(net: LiveNetwork, rng: random.Random) -> int:
    """Sends megabytes over connections that never greet: agents must not hold them in memory."""
    with ExitStack() as held:
        for number in range(40):
            with suppress(OSError):
                connection = held.enter_context(connected(net.address(AGENTS[number % 3])))
                connection.settimeout(0.2)
                connection.sendall((2**20).to_bytes(4, "big"))
                with suppress(OSError):
                    connection.sendall(bytes(1 << 20))
        time.sleep(0.5)
    return 40


def deep_greetings(net: LiveNetwork, rng: random.Random) -> int:
    """Sends one thousand nested lists in the first frame, at both ends."""
    count = 0
    for depth in (100, 900, 980, 990, 1000, 1005):
        for node in AGENTS:
            nested = deep(depth, "msgpack", rng)
            for body in (["hello", 4, "", "", nested], ["hello", 3, "", "", "", b"", nested], nested):
                data = encoded(body, "msgpack")
                old = len(data).to_bytes(4, "big") + bytes(16) + data
                say(net.address(node), old)
                say(net.address(node), greeting(bytes(ID_SIZE), data, NONCE, Seal(NONCE)))
                count += 2
    return count


def fuzzed_greetings(net: LiveNetwork, rng: random.Random) -> int:
    sound = [
        Speaker(MALLORY, NODES).hello(HONEST, PAIR, NONCE),
        Speaker(MALLORY, NODES, run="another run").hello(HONEST, PAIR, NONCE),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"SSH-2.0-x\r\n",
    ]
    for number in range(600):
        source = rng.choice(["", *net.hosts.values()])
        say(net.address(AGENTS[number % 3]), changed_bytes(sound, rng), source)
    return 600


def fuzzed_datagrams(net: LiveNetwork, rng: random.Random) -> int:
    """Sends random datagrams to the port of the exchange, from the agents' addresses."""
    speaker = Speaker(MALLORY, NODES, secret=bytes(32))
    count = 0
    for node in AGENTS:
        sound = [
            speaker.datagram(node, b"\x94\x02\xc4\x08epoch of\xc4\x08epoch of\x90"),
            rng.randbytes(40),
            b"",
        ]
        for source in ("", *net.hosts.values()):
            made = (changed_bytes(sound, rng) for _ in range(300))
            count += send_datagrams(net.address(node), made, source)
    return count


def spoofed_probes(net: LiveNetwork, rng: random.Random) -> int:
    """Sends probes of thousands of invented nodes, then random ones in the agents' names."""
    count = 0
    for number in range(1500):
        source = f"127.98.{number // 250}.{number % 250 + 1}"
        probe = msgspec.msgpack.encode(Probe(rng.getrandbits(32), 1, 0, 0))
        for node in AGENTS:
            count += send_datagrams((net.hosts[node], PROBE_PORT), [probe], source)
    sound = [plain(Probe(9, 1, 100, 0)), plain(Probe(9, 2, 100, 2, bytes(900)))]
    for node in AGENTS:
        made = (changed_message(sound, "msgpack", rng) for _ in range(500))
        count += send_datagrams((net.hosts[node], PROBE_PORT), made, net.hosts[rng.choice(NODES)])
    return count


def spoofed_replies(net: LiveNetwork, rng: random.Random) -> int:
    """Sends replies in the agents' names, with values from the far future."""
    known = tuple(Known(host, 2**62, {}) for host in net.hosts.values())
    perfect = tuple(
        Known(host, 2**62, {net.hosts[SINK]: Estimate(1.0, 1.0, 0.0, 1e9)}) for host in net.hosts.values()
    )
    sessions = [rng.getrandbits(31) for _ in range(50)]
    made = [
        msgspec.msgpack.encode(Reply(session, 1, number, 0, 0, number, number, 10, 10, None, claim))
        for session in sessions
        for number in (1, 5, 1000)
        for claim in (known, perfect)
    ]
    count = 0
    for node in AGENTS:
        for source in net.hosts.values():
            count += send_datagrams((net.hosts[node], PROBE_PORT), made, source)
    return count


def replay(recorder: Heard) -> Callable[[LiveNetwork, random.Random], int]:
    """Replays everything that was heard of this run in its senders' names: connections whole and in part."""

    def attack(net: LiveNetwork, rng: random.Random) -> int:
        count = 0
        for flow, data in list(recorder.flows.items())[:60]:
            if flow.port == PORT:
                for part in (bytes(data), bytes(data[:200]), bytes(data[100:])):
                    say((flow.destination, PORT), part, flow.source)
                    count += 1
        for datagram in list(recorder.datagrams):
            send_datagrams((datagram.destination, datagram.port), [datagram.data] * 3, datagram.source)
            count += 3
        return count

    return attack


def replay_after_restart(recorder: Recorder) -> Callable[[LiveNetwork, random.Random], Awaitable[int]]:
    """Replays what agents said before a restart, to those that have just started with the same keys."""

    async def attack(net: LiveNetwork, rng: random.Random) -> int:
        heard = recorder.copy()
        await net.restart()
        return await asyncio.to_thread(replay(heard), net, rng)

    return attack


def replay_to_others(recorder: Recorder) -> Callable[[LiveNetwork, random.Random], int]:
    """Replays the same to other agents than it was meant for, and changed."""

    def attack(net: LiveNetwork, rng: random.Random) -> int:
        count = 0
        flows = [bytes(data) for flow, data in recorder.flows.items() if flow.port == PORT and data]
        for number in range(min(300, 10 * len(flows))):
            say(
                net.address(AGENTS[number % 3]),
                changed_bytes([data[:4000] for data in flows], rng),
                rng.choice(list(net.hosts.values())),
            )
            count += 1
        for datagram in list(recorder.datagrams)[:600]:
            to = net.hosts[rng.choice(AGENTS)]
            data = rng.choice((datagram.data, changed_bytes((datagram.data,), rng)))
            count += send_datagrams((to, datagram.port), [data], rng.choice(list(net.hosts.values())))
        return count

    return attack
