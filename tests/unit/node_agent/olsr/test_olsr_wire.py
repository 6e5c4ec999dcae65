"""The OLSR codec against packets that olsrd sent, and against bytes it must refuse."""

import gzip
import json
from typing import Any

import pytest
from msgspec.structs import replace

from benchmarks.shared.olsr_captures import CAPTURES, payloads
from node_agent.olsr import validity
from node_agent.olsr.accepted_networks import announced_network
from node_agent.olsr.wire import (
    HELLO,
    HNA,
    LQ_HELLO,
    LQ_TC,
    MID,
    TC,
    Group,
    Hello,
    Malformed,
    Message,
    Neighbour,
    Packet,
    Tc,
    decode_hello,
    decode_hna,
    decode_mid,
    decode_packet,
    decode_tc,
    dotted,
    encode_hello,
    encode_hna,
    encode_mid,
    encode_packet,
    encode_tc,
    number,
)

LINK_TYPES = ("UNSPEC", "ASYM", "SYM", "LOST")
NEIGHBOUR_TYPES = ("NOT", "SYM", "MPR")


def message(kind: int, body: bytes) -> Message:
    return Message(kind, 0x48, number("10.0.0.1"), 1, 0, 7, body)


def in_words(packet: Packet) -> dict[str, Any]:
    """A packet in the form of the reference decoding."""
    return {"pseq": packet.seqno, "msgs": [message_in_words(message) for message in packet.messages]}


def message_in_words(message: Message) -> dict[str, Any]:
    return {
        "type": message.kind,
        "vtime": validity.seconds(message.vtime),
        "vtime_raw": message.vtime,
        "size": 12 + len(message.body),
        "orig": dotted(message.originator),
        "ttl": message.ttl,
        "hops": message.hops,
        "seq": message.seqno,
    } | body_in_words(message)


def body_in_words(message: Message) -> dict[str, Any]:
    if message.kind == LQ_HELLO:
        hello = decode_hello(message)
        return {
            "htime": validity.seconds(hello.htime),
            "htime_raw": hello.htime,
            "will": hello.willingness,
            "links": [
                {"link": LINK_TYPES[group.code & 3], "neigh": NEIGHBOUR_TYPES[group.code >> 2]}
                | neighbour_in_words(neighbour)
                | {"lqx": neighbour.quality[2:].hex()}
                for group in hello.groups
                for neighbour in group.neighbours
            ],
        }
    if message.kind == LQ_TC:
        tc = decode_tc(message)
        neighbours = [neighbour_in_words(neighbour) for neighbour in tc.neighbours]
        return {"ansn": tc.ansn, "border": [tc.lower_border, tc.upper_border], "neigh": neighbours}
    if message.kind == MID:
        return {"alias": [dotted(alias) for alias in decode_mid(message).aliases]}
    return {"hna": [[dotted(network), dotted(netmask)] for network, netmask in decode_hna(message).networks]}


def neighbour_in_words(neighbour: Neighbour) -> dict[str, Any]:
    return {"addr": dotted(neighbour.address), "lq": neighbour.quality[0], "nlq": neighbour.quality[1]}


def reencoded(message: Message) -> Message:
    if message.kind in (HELLO, LQ_HELLO):
        body = encode_hello(decode_hello(message), message.kind)
    elif message.kind in (TC, LQ_TC):
        body = encode_tc(decode_tc(message), message.kind)
    elif message.kind == MID:
        body = encode_mid(decode_mid(message))
    else:
        body = encode_hna(decode_hna(message))
    return replace(message, body=body)


def test_every_captured_packet_decodes_to_what_the_reference_decoder_saw() -> None:
    lines = gzip.decompress((CAPTURES / "etx_ff.jsonl.gz").read_bytes()).splitlines()
    packets = payloads("etx_ff")
    assert len(packets) == len(lines) == 1308
    for data, line in zip(packets, lines, strict=True):
        expected = json.loads(line)
        assert in_words(decode_packet(data)) == {key: expected[key] for key in ("pseq", "msgs")}


@pytest.mark.parametrize(("capture", "count"), [("etx_ff", 1308), ("rfc", 259)])
def test_every_captured_packet_encodes_to_the_same_bytes(capture: str, count: int) -> None:
    packets = payloads(capture)
    assert len(packets) == count
    for data in packets:
        packet = decode_packet(data)
        assert encode_packet(packet.seqno, [reencoded(message) for message in packet.messages]) == data


def test_messages_of_the_rfc_have_no_quality() -> None:
    messages = [message for data in payloads("rfc") for message in decode_packet(data).messages]
    assert {message.kind for message in messages} == {HELLO, TC, MID, HNA}
    hellos = [decode_hello(message) for message in messages if message.kind == HELLO]
    tcs = [decode_tc(message) for message in messages if message.kind == TC]
    listed = [n for hello in hellos for group in hello.groups for n in group.neighbours]
    listed += [n for tc in tcs for n in tc.neighbours]
    assert {dotted(neighbour.address) for neighbour in listed} == {f"10.0.0.{node}" for node in range(1, 6)}
    assert {neighbour.quality for neighbour in listed} == {b""}
    assert {(tc.lower_border, tc.upper_border) for tc in tcs} == {(0, 0)}


def test_a_message_of_an_unknown_kind_is_kept_as_it_is() -> None:
    strange = message(130, b"odd")
    data = encode_packet(1, [strange, message(MID, b"")])
    assert decode_packet(data).messages == (strange, message(MID, b""))


GOOD = encode_packet(5, [message(MID, bytes(4)), message(MID, bytes(8))])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:3],
        bytes.fromhex("00040001"),
        GOOD[:-1],
        GOOD + GOOD[4:],
        bytes.fromhex("00290005") + GOOD[4:] + b"\0",
        GOOD[:6] + b"\0\x0b" + GOOD[8:],
        GOOD[:6] + b"\0\0" + GOOD[8:],
        GOOD[:6] + b"\0\x11" + GOOD[8:],
        GOOD[:6] + b"\xff\xff" + GOOD[8:],
    ],
    ids=[
        "nothing",
        "no header",
        "no message",
        "cut",
        "longer than it says",
        "a byte after the last message",
        "message shorter than its header",
        "message of no size",
        "message that ends in the midst of the next",
        "message longer than the packet",
    ],
)
def test_a_packet_whose_lengths_do_not_add_up_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_packet(data)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "000005",
        "00010503",
        "0000050306",
        "0000050306000000",
        "0000050306000003",
        "0000050306010008" + "0a000001",
        "0000050306000009" + "0a00000100",
        "000005030600000c" + "0a000001",
    ],
    ids=[
        "nothing",
        "cut",
        "reserved",
        "cut in a group",
        "group of no size",
        "group shorter than its header",
        "reserved in a group",
        "a byte too many",
        "group longer than the message",
    ],
)
@pytest.mark.parametrize("kind", [HELLO, LQ_HELLO])
def test_a_hello_that_does_not_add_up_is_malformed(kind: int, body: str) -> None:
    with pytest.raises(Malformed):
        decode_hello(message(kind, bytes.fromhex(body)))


def test_a_hello_with_half_a_quality_is_malformed() -> None:
    body = bytes.fromhex("000005030600000c" + "0a0000010a000002")
    assert len(decode_hello(message(HELLO, body)).groups[0].neighbours) == 2
    assert len(decode_hello(message(LQ_HELLO, body)).groups[0].neighbours) == 1
    cut = bytes.fromhex("0000050306000008" + "0a000001")
    assert len(decode_hello(message(HELLO, cut)).groups[0].neighbours) == 1
    with pytest.raises(Malformed):
        decode_hello(message(LQ_HELLO, cut))


def test_a_tc_or_mid_or_hna_that_does_not_add_up_is_malformed() -> None:
    for kind, body in ((TC, "000a"), (TC, "000a0001"), (LQ_TC, "000affff0a000001"), (TC, "000a00000a")):
        with pytest.raises(Malformed):
            decode_tc(message(kind, bytes.fromhex(body)))
    with pytest.raises(Malformed):
        decode_mid(message(MID, bytes(5)))
    for body in ("0a000000", "0a000000ff0000"):
        with pytest.raises(Malformed):
            decode_hna(message(HNA, bytes.fromhex(body)))


def test_any_prefix_length_is_a_netmask() -> None:
    masks = [0xFFFF_FFFF << (32 - length) & 0xFFFF_FFFF for length in range(33)]
    body = b"".join(bytes(4) + mask.to_bytes(4, "big") for mask in masks)
    assert [mask for _, mask in decode_hna(message(HNA, body)).networks] == masks
    assert [announced_network(0, mask) for mask in masks] == [(0, mask) for mask in masks]


@pytest.mark.parametrize(
    ("address", "netmask", "network"),
    [
        ("192.168.7.5", "255.255.255.0", ("192.168.7.0", "255.255.255.0")),
        ("0.0.0.0", "0.0.0.0", ("0.0.0.0", "0.0.0.0")),
        # SmartGateway: no netmask but 0, flags (link speed, IPv4, NAT), uplink, downlink
        ("0.0.0.0", "0.7.10.43", ("0.0.0.0", "0.0.0.0")),
        ("0.0.0.0", "0.1.10.0", ("0.0.0.0", "0.0.0.0")),
        ("0.0.0.0", "0.1.0.0", None),
        ("10.0.0.0", "255.0.255.0", None),
        ("10.0.0.0", "0.7.10.43", None),
        ("0.0.0.0", "128.7.10.43", None),
        ("0.0.0.0", "1.0.0.0", None),
    ],
)
def test_an_entry_of_an_hna_announces_a_network_or_none(
    address: str, netmask: str, network: tuple[str, str] | None
) -> None:
    expected = network and (number(network[0]), number(network[1]))
    assert announced_network(number(address), number(netmask)) == expected


def test_a_body_is_not_read_as_another_kind() -> None:
    for decode in (decode_hello, decode_tc, decode_mid, decode_hna):
        with pytest.raises(Malformed):
            decode(message(130, bytes(8)))


def test_quality_goes_with_the_kind() -> None:
    bare, measured = Neighbour(1, b""), Neighbour(1, bytes(4))
    with pytest.raises(ValueError, match="quality"):
        encode_hello(Hello(5, 3, (Group(6, (bare,)),)), LQ_HELLO)
    with pytest.raises(ValueError, match="quality"):
        encode_tc(Tc(1, 0, 0, (measured,)), TC)


def test_addresses_are_numbers_and_text() -> None:
    assert number("10.0.0.255") == 0x0A0000FF
    assert dotted(0xC0A83700) == "192.168.55.0"
    for text in ("10.0.0", "10.0.0.256", "10.0.0.1/24", "node1", ""):
        with pytest.raises(ValueError):
            number(text)


@pytest.mark.parametrize(
    ("given", "code", "understood"),
    [
        (2.0, 0x05, 2.0),
        (20.0, 0x48, 20.0),
        (300.0, 0x2C, 288.0),
        (0.0, 0x10, 0.06640625),
        (0.124, 0x10, 0.06640625),
        (0.125, 0x01, 0.125),
        (3968.0, 0xFF, 3968.0),
        (1e9, 0xFF, 3968.0),
    ],
)
def test_times_as_olsrd_sends_them(given: float, code: int, understood: float) -> None:
    assert validity.encode(given) == code
    assert validity.seconds(code) == understood


def olsrd_code(ms: int) -> int:
    """olsrd's own arithmetic, in milliseconds and integers."""
    doubled = ms // 125 * 2
    b = doubled.bit_length() - 1
    above = ms - 125 * 2 ** (b - 1)
    a = int(above // (125 * 2 ** (b - 5)) if b >= 5 else above * 2 ** (5 - b) // 125)
    return (a & 15) << 4 | b + (a >> 4)


def test_times_are_truncated_as_by_olsrd() -> None:
    for ms in [*range(125, 20_000), *range(20_000, 3_968_000, 61)]:
        code = validity.encode(ms / 1000)
        assert code == olsrd_code(ms)
        assert ms / 1000 * 16 / 17 < validity.seconds(code) <= ms / 1000


def test_every_code_that_can_be_sent_comes_back() -> None:
    assert validity.encode(validity.seconds(0x10)) == 0x10
    for code in range(256):
        if code & 15:
            assert validity.encode(validity.seconds(code)) == code
