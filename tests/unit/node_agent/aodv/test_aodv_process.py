"""The rim of the AODV daemon, as far as it needs no kernel: configuration, filters, answers to queries."""

import struct
from pathlib import Path

import msgspec
import pytest

from node_agent.aodv.__main__ import configured, main, parser
from node_agent.aodv.capture import unreachable
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.process import run
from node_agent.aodv.reader import parse
from node_agent.aodv.traffic import Instruction, Pair, program
from node_agent.linkstate.reader import Edge, Garbage


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"interface": "wlan0", "aodv": {"detection": "feedback"}}', "detection must be hello"),
        ('{"interface": "nosuch0"}', "there is no interface nosuch0"),
        ('{"interface": "wlan0", "speed": 3}', "unknown field"),
        ('{"interface": "wlan0", "manet": {"networks": ["10.0.0.1/16"]}}', "host bits"),
        ("", "truncated"),
    ],
)
def test_what_cannot_run_is_told_in_one_line(
    text: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    assert run(str(file)) in (1, 2)
    told = capfd.readouterr().err
    assert said in told and told.count("\n") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"active_route_timeout": 0},
        {"held_packets": 0},
        {"ttl_start": 9},
        {"net_diameter": 256},
        {"rreq_retries": -1},
        {"jitter": 1.0},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
        msgspec.convert(wrong, AodvConfig)


def test_the_command_line_becomes_a_configuration(capfd: pytest.CaptureFixture[str]) -> None:
    config = configured(parser().parse_args(["-i", "wlan0", "--hello", "0.5", "--allowed-hello-loss", "3"]))
    assert (config.interface, config.aodv.silence, config.aodv.detection) == ("wlan0", 1.5, "hello")
    assert main(["--interface", "wlan0", "--hello", "0"]) == 2
    assert "hello_interval" in capfd.readouterr().err


def filtered(code: list[Instruction], source: int, destination: int, kind: int = 4) -> int:
    """What a kernel would make of the program: how many bytes of the packet are kept."""
    at, loaded = 0, 0
    fields = {12: source, 16: destination, 0xFFFFF000: 0x0800, 0xFFFFF004: kind}
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x06:
            return value
        if operation == 0x15:
            at += if_true if loaded == value else if_false
        else:
            loaded = fields[value]


def test_the_filter_lets_each_pair_pass_until_it_is_known() -> None:
    known = [Pair(1, 2), Pair(3, 4)]
    code = program(known)
    for pair in (Pair(1, 2), Pair(3, 4)):
        assert filtered(code, *pair) == 0
    for pair in (Pair(1, 4), Pair(2, 1), Pair(3, 2)):
        assert filtered(code, *pair) == 20
    assert filtered(code, 5, 6, kind=3) == 0  # for somebody else
    assert filtered(code, 5, 6, kind=0) == 20


def test_errors_about_packets_quote_them_and_add_up() -> None:
    header = struct.pack("!BBHHHBBHII", 0x45, 0, 48, 1, 0, 64, 17, 0, 1, 2)
    error = unreachable(header + bytes(range(28)))
    assert error is not None and error[:2] == b"\x03\x01" and error[8:] == header + bytes(range(8))
    total = sum(struct.unpack(f"!{len(error) // 2}H", error))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    icmp_error = header[:9] + b"\x01" + header[10:] + b"\x03\x01" + bytes(30)
    assert unreachable(icmp_error) is None
    fragment = header[:6] + b"\x00\x10" + header[8:] + bytes(28)
    assert unreachable(fragment) is None


def test_answers_become_costs_or_garbage() -> None:
    reading = parse(b'{"address": "10.0.0.1", "hops": {"10.0.0.2": 1, "10.0.0.9": 4}}')
    assert reading.edges == {"10.0.0.1": {"10.0.0.2": Edge(1.0), "10.0.0.9": Edge(4.0, hops=4)}}
    for answer in (
        b"",
        b"[]",
        b'{"address": "10.0.0.1"}',
        b'{"address": "x", "hops": {}}',
        b'{"address": "10.0.0.1", "hops": {"10.0.0.2": 0}}',
    ):
        with pytest.raises(Garbage):
            parse(answer)
