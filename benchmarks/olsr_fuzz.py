"""Tests the OLSR decoder with broken packets: a million mutations of packets that olsrd sent.

A crash is any exception but `Malformed`, and any accepted packet or body that encodes to other bytes.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from struct import pack_into
from typing import Any

from msgspec.structs import replace

from benchmarks.attacks.mutation import ByteChange, extend, flip_bits, insert_or_cut, truncate
from benchmarks.shared.harness import Figures, main
from benchmarks.shared.olsr_captures import payloads
from node_agent.olsr import wire
from node_agent.olsr.wire import HELLO, HNA, LQ_HELLO, LQ_TC, MID, TC, Malformed, Message

PACKETS = 1_000_000
SEED = 698
SECONDS_AT_MOST = 600.0
LONGEST_PACKET = 1472
FIRST_BODY = wire.PACKET_HEADER_SIZE + wire.MESSAGE_HEADER_SIZE
LYING_SIZES = (0, 1, 3, 4, 8, 11, 12, 13, 15, 16, 255, 1472, 32767, 65535)

REPETITIONS = 20

# How to read a body of each kind, and how to write it again.
CODECS: Mapping[int, tuple[Callable[[Message], Any], Callable[[Any], bytes]]] = {
    HELLO: (wire.decode_hello, partial(wire.encode_hello, kind=HELLO)),
    LQ_HELLO: (wire.decode_hello, partial(wire.encode_hello, kind=LQ_HELLO)),
    TC: (wire.decode_tc, partial(wire.encode_tc, kind=TC)),
    LQ_TC: (wire.decode_tc, partial(wire.encode_tc, kind=LQ_TC)),
    MID: (wire.decode_mid, wire.encode_mid),
    HNA: (wire.decode_hna, wire.encode_hna),
}


def lie_about_a_size(data: bytearray, rng: random.Random) -> None:
    """Changes a 16-bit field, which may be a size: wrong sizes are the most dangerous values."""
    places = size_fields(data)
    place = rng.choice(places) if places and rng.random() < 0.9 else rng.randrange(max(1, len(data) - 1))
    if place + 2 <= len(data):
        said = int.from_bytes(data[place : place + 2], "big")
        lie = rng.choice(LYING_SIZES) if rng.random() < 0.5 else said + rng.randint(-16, 16)
        pack_into("!H", data, place, lie & 0xFFFF)


def size_fields(data: bytearray) -> list[int]:
    """Returns where the sizes of the packet, its messages and their groups are, as far as they can be
    followed.
    """
    places = [0] if len(data) >= 2 else []
    start = wire.PACKET_HEADER_SIZE
    while start + wire.MESSAGE_HEADER_SIZE <= len(data):
        places.append(start + 2)
        end = start + int.from_bytes(data[start + 2 : start + 4], "big")
        if data[start] in (HELLO, LQ_HELLO):
            group = start + wire.MESSAGE_HEADER_SIZE + 4
            while group + 4 <= min(end, len(data)):
                places.append(group + 2)
                group += max(4, int.from_bytes(data[group + 2 : group + 4], "big"))
        if end < start + wire.MESSAGE_HEADER_SIZE:
            break
        start = end
    return places


MUTATIONS: Sequence[ByteChange] = (flip_bits, truncate, extend, insert_or_cut, lie_about_a_size)


def mutated(originals: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yields packets endlessly. Half of them get a correct packet length, to pass the first check."""
    rng = random.Random(seed)
    while True:
        data = bytearray(rng.choice(originals))
        if rng.random() < 0.2:  # a splice
            other = rng.choice(originals)
            data[rng.randrange(len(data)) :] = other[rng.randrange(len(other)) :]
        for _ in range(rng.randint(1, 3)):
            if data:
                rng.choice(MUTATIONS)(data, rng)
        del data[LONGEST_PACKET:]
        if len(data) >= 2 and rng.random() < 0.5:
            pack_into("!H", data, 0, len(data))
        yield bytes(data)


def accepted_messages(data: bytes) -> tuple[Message, ...]:
    """Returns the messages; empty if the packet is refused."""
    try:
        packet = wire.decode_packet(data)
    except Malformed:
        return ()
    if wire.encode_packet(packet.seqno, packet.messages) != data:
        raise AssertionError("a packet does not encode to the same bytes")
    return packet.messages


def refused_bodies(message: Message) -> int:
    """Reads the body as every kind; returns how many of them refuse it."""
    refused = 0
    for kind, (decode, encode) in CODECS.items():
        try:
            value = decode(replace(message, kind=kind))
        except Malformed:
            refused += 1
            continue
        if encode(value) != message.body:
            raise AssertionError(f"a body of kind {kind} does not encode to the same bytes")
    return refused


def fuzz(packets: Iterable[bytes]) -> dict[str, int | str]:
    counts = {"packets": 0, "crashes": 0, "packets_accepted": 0, "bodies_accepted": 0, "bodies_refused": 0}
    first_crash = ""
    for data in packets:
        counts["packets"] += 1
        try:
            messages = accepted_messages(data)
            counts["packets_accepted"] += bool(messages)
            bodies = messages or (Message(0, 0, 0, 0, 0, 0, data[FIRST_BODY:]),)
            refused = sum(map(refused_bodies, bodies))
        except Exception as error:  # any exception: finding it is the purpose of this test
            counts["crashes"] += 1
            first_crash = first_crash or f"{error!r} by {data.hex()}"
            continue
        counts["bodies_accepted"] += len(bodies) * len(CODECS) - refused
        counts["bodies_refused"] += refused
    return {**counts, "first_crash": first_crash}


def for_at_most(seconds: float, packets: Iterable[bytes]) -> Iterator[bytes]:
    end = time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < end, packets)


def decode_whole(data: bytes) -> None:
    for message in wire.decode_packet(data).messages:
        CODECS[message.kind][0](message)


def per_second(decode: Callable[[bytes], object], packets: Sequence[bytes]) -> float:
    started = time.process_time()
    for _ in range(REPETITIONS):
        for data in packets:
            decode(data)
    return REPETITIONS * len(packets) / (time.process_time() - started)


def measure() -> Figures:
    originals = payloads("etx_ff") + payloads("rfc")
    started = time.monotonic()
    figures = fuzz(for_at_most(SECONDS_AT_MOST, islice(mutated(originals, SEED), PACKETS)))
    return {
        **figures,
        "seconds": time.monotonic() - started,
        "headers_decoded_per_s": per_second(wire.decode_packet, originals),
        "packets_decoded_per_s": per_second(decode_whole, originals),
    }


if __name__ == "__main__":
    main("OLSR decoder against mutated packets", measure)
