from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from orchestrator.backends.netns.commands import (
    AddNeighbour,
    CreateBridge,
    CreateNamespace,
    CreateTap,
    CreateVeth,
    OpenPacketSocket,
    SetLink,
    SetSysctl,
)
from orchestrator.backends.netns.layout import (
    Layout,
    NodeLayout,
    RadioEnd,
    mac_address,
    numbered,
    problems,
    steps,
)
from orchestrator.backends.netns.marks import AIR, CONTROL, Mark

MARK = Mark("run", Path("/runs/run"))
LAYOUT = numbered(["a", "b", "c"])


@pytest.mark.parametrize("radio_end", list(RadioEnd))
def test_every_step_happens_in_a_namespace_made_before_it(radio_end: RadioEnd) -> None:
    made: set[str] = set()
    for step in steps(replace(LAYOUT, radio_end=radio_end), MARK):
        match step.command:
            case CreateNamespace(name):
                assert name == MARK.namespace(step.node)
                made.add(step.node)
            case CreateVeth(_, peer_node):
                assert peer_node in made
        assert step.node in made
    assert made == {"a", "b", "c", CONTROL} | ({AIR} if radio_end is RadioEnd.PACKET else set())


def test_defaults_are_set_before_there_is_a_link_to_copy_them() -> None:
    linked: set[str] = set()
    for step in steps(LAYOUT, MARK):
        match step.command:
            case CreateTap() | CreateVeth() | CreateBridge():
                linked.add(step.node)
            case SetSysctl():
                assert step.node not in linked


def test_every_link_carries_its_nodes_mark() -> None:
    links = [step for step in steps(LAYOUT, MARK) if isinstance(step.command, SetLink)]
    assert len(links) == 1 + 3 * len(LAYOUT.nodes)
    aliases = {step.command.alias for step in links if isinstance(step.command, SetLink)}
    assert aliases == {MARK.alias(node) for node in ("a", "b", "c", CONTROL)}


def test_static_neighbours_are_all_peers_and_not_oneself() -> None:
    layout = replace(LAYOUT, static_neighbours=True)
    known = [
        (step.node, step.command.address, step.command.mac)
        for step in steps(layout, MARK)
        if isinstance(step.command, AddNeighbour)
    ]
    assert known == [
        (node.name, peer.radio.ip, peer.mac) for node in layout.nodes for peer in layout.nodes if peer != node
    ]
    assert not any(isinstance(step.command, AddNeighbour) for step in steps(LAYOUT, MARK))


def test_the_radio_has_one_end_per_node() -> None:
    packet = steps(replace(LAYOUT, radio_end=RadioEnd.PACKET), MARK)
    ends = [step.command.node for step in packet if isinstance(step.command, OpenPacketSocket)]
    assert ends == ["a", "b", "c"]
    taps = [step.node for step in steps(LAYOUT, MARK) if isinstance(step.command, CreateTap)]
    assert taps == ["a", "b", "c"]


def test_hardware_addresses_are_unicast_local_and_distinct() -> None:
    macs = [mac_address(number) for number in (1, 255, 256, 65536)]
    assert len(set(macs)) == 4
    assert all(int(mac[:2], 16) & 0b11 == 0b10 for mac in macs)


FIRST, SECOND, THIRD = LAYOUT.nodes


def with_second(second: NodeLayout) -> Layout:
    return replace(LAYOUT, nodes=(FIRST, second, THIRD))


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        (numbered([]), "no nodes"),
        (numbered(["a", "b", "a"]), "node name a is used 2 times"),
        (numbered(["a/b"]), "node name 'a/b': letters, digits, - and _ only, at most 63"),
        (numbered(["n" * 64]), f"node name {'n' * 64!r}: letters, digits, - and _ only, at most 63"),
        (with_second(replace(SECOND, mac=FIRST.mac)), "hardware address 02:52:00:00:00:01 is used 2 times"),
        (with_second(replace(SECOND, radio=FIRST.radio)), "radio address 10.0.0.1 is used 2 times"),
        (
            with_second(replace(SECOND, control=LAYOUT.control)),
            "control address 172.30.255.254 is used 2 times",
        ),
        (
            with_second(replace(SECOND, control=IPv4Interface("10.0.9.9/16"))),
            "the radio network and the control network overlap",
        ),
        (replace(LAYOUT, queue_length=0), "queue length 0: at least 1"),
        (replace(LAYOUT, mtu=9000), "MTU 9000: between 68 and 1500"),
    ],
)
def test_an_impossible_layout_is_told_why(layout: Layout, problem: str) -> None:
    assert problems(layout) == [problem]


def test_a_numbered_layout_has_no_problems() -> None:
    assert problems(numbered([f"n{number}" for number in range(200)])) == []
