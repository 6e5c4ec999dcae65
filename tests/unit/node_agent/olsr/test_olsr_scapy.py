"""Captures of OLSR in scapy: all fields have names, and what was taken apart can be built again."""

import subprocess
import sys
from itertools import islice

import pytest
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet, Raw
from scapy.utils import PcapReader

from benchmarks.olsr_fuzz import mutated
from benchmarks.shared.olsr_captures import CAPTURES, payloads
from node_agent.manet.seal import Seal
from node_agent.olsr import greeting, sealed, wire
from orchestrator.captures.olsr import (
    Olsr,
    OlsrGreeting,
    OlsrGroup,
    OlsrHello,
    OlsrHna,
    OlsrLqGroup,
    OlsrLqHello,
    OlsrLqNeighbour,
    OlsrLqTc,
    OlsrMessage,
    OlsrMid,
    OlsrNeighbour,
    OlsrNetwork,
    OlsrSeal,
    OlsrTc,
)


def forget_bytes_and_sizes(packet: Packet) -> None:
    """Leaves nothing but the values of the fields to build from."""
    layer: Packet | None = packet
    while layer:
        layer.raw_packet_cache = None
        layer.fields.pop("size", None)
        for value in layer.fields.values():
            for inner in value if isinstance(value, list) else ():
                if isinstance(inner, Packet):
                    forget_bytes_and_sizes(inner)
        layer = layer.payload


@pytest.mark.parametrize("capture", ["etx_ff", "rfc"])
def test_captured_packets_are_taken_apart_and_built_again(capture: str) -> None:
    for data in payloads(capture):
        packet = Olsr(data)
        assert not packet.payload
        for message in packet.messages:
            assert not message.haslayer(Raw)
        forget_bytes_and_sizes(packet)
        assert bytes(packet) == data


def test_captures_are_dissected_from_the_frame_on() -> None:
    with PcapReader(str(CAPTURES / "rfc.pcap.gz")) as packets:
        for packet in packets:
            assert (packet[UDP].sport, packet[UDP].dport) == (698, 698)
            assert packet[IP].src in {message.originator for message in packet[Olsr].messages}


def test_what_scapy_builds_the_codec_understands() -> None:
    near, far = "10.0.0.2", "10.0.0.3"
    bodies = [
        OlsrHello(
            groups=[
                OlsrGroup(link_type="SYM", neighbour_type="MPR", neighbours=[OlsrNeighbour(address=near)])
            ]
        ),
        OlsrLqHello(
            groups=[
                OlsrLqGroup(link_type="ASYM", neighbours=[OlsrLqNeighbour(address=near, lq=200, nlq=100)]),
                OlsrLqGroup(link_type="SYM", neighbour_type="SYM"),
            ]
        ),
        OlsrTc(ansn=7, neighbours=[OlsrNeighbour(address=near), OlsrNeighbour(address=far)]),
        OlsrLqTc(ansn=8, neighbours=[OlsrLqNeighbour(address=far, ffeth_lq=1, ffeth_nlq=2)]),
        OlsrMid(aliases=[near, far]),
        OlsrHna(networks=[OlsrNetwork(network="192.168.55.0", netmask="255.255.255.0")]),
    ]
    header = OlsrMessage(originator="10.0.0.1", ttl=255, hops=2, seqno=9)
    packet = IP() / UDP() / Olsr(seqno=3, messages=[header / body for body in bodies])
    assert (packet[UDP].sport, packet[UDP].dport) == (698, 698)
    seqno, messages = wire.decode_packet(bytes(packet[Olsr]))
    assert seqno == 3
    assert [message.kind for message in messages] == [1, 201, 2, 202, 3, 4]
    headers = {(each.originator, each.ttl, each.hops, each.seqno) for each in messages}
    assert headers == {(wire.number("10.0.0.1"), 255, 2, 9)}
    hello, lq_hello, tc, lq_tc, mid, hna = messages
    two, three = wire.number(near), wire.number(far)
    bare = wire.Neighbour(two, b"")
    assert wire.decode_hello(hello) == (0x05, 3, ((2 | 2 << 2, (bare,)),))
    assert wire.decode_hello(lq_hello).groups == ((1, ((two, b"\xc8\x64\0\0"),)), (2 | 1 << 2, ()))
    assert wire.decode_tc(tc) == (7, 0, 0, (bare, (three, b"")))
    assert wire.decode_tc(lq_tc) == (8, 255, 255, ((three, b"\0\0\1\2"),))
    assert wire.decode_mid(mid).aliases == (two, three)
    assert wire.decode_hna(hna).networks == ((wire.number("192.168.55.0"), wire.number("255.255.255.0")),)


def test_a_broken_packet_is_shown_as_far_as_it_goes() -> None:
    mid = OlsrMessage(originator="10.0.0.3") / OlsrMid(aliases=["10.1.0.3"])
    tc = OlsrMessage(originator="10.0.0.4") / OlsrLqTc(neighbours=[OlsrLqNeighbour(address="10.0.0.5")])
    data = bytes(Olsr(messages=[mid, tc]))
    cut = Olsr(data[:-3])
    assert cut.messages[0].aliases == ["10.1.0.3"]
    assert "LQ_TC of 10.0.0.4" in cut.mysummary()
    message_of_no_size = Olsr(data[:6] + b"\0\0" + data[8:])
    assert "MID of 10.0.0.3" in message_of_no_size.mysummary()


def test_no_broken_packet_stops_a_listing() -> None:
    for data in islice(mutated(payloads("etx_ff") + payloads("rfc"), seed=3), 400):
        packet = IP(bytes(IP() / UDP(sport=698, dport=698) / Raw(data)))
        if Olsr in packet:
            packet[Olsr].mysummary()
            packet[Olsr].show(dump=True)


def list_capture(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orchestrator.captures", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50)


def test_a_capture_is_listed_one_line_a_packet() -> None:
    listed = list_capture(str(CAPTURES / "rfc.pcap.gz"))
    lines = listed.stdout.splitlines()
    assert (listed.returncode, listed.stderr, len(lines)) == (0, "", 259)
    assert lines[0].endswith("10.0.0.3 #14474: HELLO of 10.0.0.3 #31108 ttl 1 hops 0")


def test_what_is_not_a_capture_is_refused_in_one_line() -> None:
    for file in (str(CAPTURES / "etx_ff.jsonl.gz"), "no-such.pcap"):
        listed = list_capture(file)
        assert (listed.returncode, listed.stdout) == (2, "")
        assert listed.stderr.count("\n") == 1
        assert file in listed.stderr


def test_a_seal_is_shown() -> None:
    packet = wire.encode_packet(3, [wire.Message(wire.MID, 5, 1, 9, 0, 1, bytes(4))])
    shown = Olsr(sealed.seal_packet(Seal(b"key", "olsr", lambda: 77_000_000), packet, 0x0A00_0001))
    _, seal = shown.messages
    assert (seal.sprintf("%kind%"), seal[OlsrSeal].time_ms, len(seal[OlsrSeal].tag)) == ("SEAL", 77, 16)
    assert "SEAL of 10.0.0.1" in shown.mysummary()


def test_a_greeting_is_shown_with_its_hardware_address() -> None:
    body = greeting.encode(bytes.fromhex("025200000107"))
    data = wire.encode_packet(5, [wire.Message(greeting.GREETING, 0x48, 0x0A00_0001, 1, 0, 9, body)])
    packet = Olsr(data)
    (message,) = packet.messages
    assert message.sprintf("%kind%") == "GREETING"
    assert (message[OlsrGreeting].version, message[OlsrGreeting].hardware) == (1, "02:52:00:00:01:07")
    forget_bytes_and_sizes(packet)
    assert bytes(packet) == data
