"""The laboratory itself: what its nodes reach and over what, their troubles, and that nothing of it stays."""

import asyncio
import shlex
import socket
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from orchestrator.backends.netns import network
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import DiskFull, SudoRefused, Unreachable
from tests.kernel.inside import answered, icmp_socket, send_ping
from tests.ssh.air import mark_of
from tests.ssh.lab import ROOT, Lab, LabNode
from tests.ssh.patience import until
from tests.ssh.sshd import HOME, USER

LONELY = """
import sys
from pathlib import Path
from tests.ssh.lab import laboratory
with laboratory(Path(sys.argv[1]), ["n01", "n02"]) as lab:
    print(lab.nodes[0].server.address, flush=True)
    sys.stdin.read()
"""


def links() -> list[str]:
    """Of this machine."""
    return [name for _, name in socket.if_nameindex()]


def told(lab: Lab, node: LabNode, *argv: str, sudo: bool = False) -> str:
    async def ask() -> str:
        connection = await Connection.open(node.server.host, lab.known_hosts, timeout=2)
        try:
            return await connection.output(argv, timeout=10, sudo=sudo)
        finally:
            await connection.close()

    return asyncio.run(ask())


def pings(lab: Lab, here: LabNode, there: LabNode, patience: float) -> bool:
    """As if routing had told both that they are neighbours."""
    ends = ((here, there), (there, here))
    for node, peer in ends:
        told(lab, node, "ip", "route", "add", f"{peer.address}/32", "dev", "wlan0", sudo=True)
    try:
        with icmp_socket(mark_of(lab.folder), here.name) as icmp:
            icmp.settimeout(patience)
            send_ping(icmp, IPv4Address(there.address))
            return answered(icmp, IPv4Address(there.address))
    finally:
        for node, peer in ends:
            told(lab, node, "ip", "route", "del", f"{peer.address}/32", sudo=True)


def test_an_unprivileged_user_logs_in_over_the_control_network(lab: Lab) -> None:
    for node in lab.nodes:
        assert told(lab, node, "sh", "-c", "id -un; pwd").split() == [USER, HOME]
        assert told(lab, node, "id", "-u", sudo=True).strip() == "0"
        assert sorted(told(lab, node, "ls", "/sys/class/net").split()) == ["ctl0", "lo", "wlan0"]


def test_the_radio_reaches_who_is_in_range(lab: Lab) -> None:
    first, second, third = lab.nodes[:3]
    assert pings(lab, first, second, patience=5.0)
    assert not pings(lab, first, third, patience=0.5)


def test_what_a_run_does_not_tidy_is_seen(lab: Lab) -> None:
    node = lab.nodes[0]
    told(lab, node, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & mkdir -p .rove/runs/r1 .rove/store")
    told(lab, node, "touch", "x", ".rove/runs/r1/y", ".rove/store/z")
    for command in (
        "ip addr add 10.77.9.9/32 dev wlan0",
        "ip route add 10.77.0.2/32 dev wlan0",
        "tc qdisc add dev wlan0 root tbf rate 1mbit burst 10kb latency 10ms",
        "sh -c 'echo 0 > /proc/sys/net/ipv4/ip_forward'",
    ):
        told(lab, node, *shlex.split(command), sudo=True)
    seen = lab.leftovers()
    expected = ("process sleep 600", "file x", "file .rove/runs/r1/y", "10.77.9.9/32", "10.77.0.2", "tbf")
    for what in (*expected, "ip_forward 0"):
        assert any(what in left for left in seen), (what, seen)
    assert not any("store" in left for left in seen)
    assert all(left.startswith(f"{node.name}: ") for left in seen)
    lab.tidy()
    assert lab.leftovers() == []


def test_a_node_that_is_off_is_silent_and_keeps_its_disk(lab: Lab) -> None:
    first, second = lab.nodes[:2]
    told(lab, second, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo kept > .profile")
    told(lab, second, "ip", "route", "add", f"{first.address}/32", "dev", "wlan0", sudo=True)
    lab.power_off(second)
    with pytest.raises(Unreachable):
        told(lab, second, "true")
    told(lab, first, "ip", "route", "add", f"{second.address}/32", "dev", "wlan0", sudo=True)
    with icmp_socket(mark_of(lab.folder), first.name) as icmp:
        icmp.settimeout(0.5)
        send_ping(icmp, IPv4Address(second.address))
        assert not answered(icmp, IPv4Address(second.address))
    told(lab, first, "ip", "route", "del", f"{second.address}/32", sudo=True)
    lab.power_on(second)
    assert second.processes() == []
    assert told(lab, second, "cat", ".profile").strip() == "kept"
    told(lab, second, "rm", ".profile")
    assert pings(lab, first, second, patience=5.0)


def test_what_was_started_outlives_hanging_and_cut_connections(lab: Lab) -> None:
    node = lab.nodes[2]

    async def scenario() -> None:
        connection = await Connection.open(node.server.host, lab.known_hosts)
        await connection.output(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"])
        node.cut()
        await until(lambda: not connection.alive)
        await connection.ensure(10.0)
        node.hang()
        with pytest.raises(Unreachable):
            await Connection.open(node.server.host, lab.known_hosts, timeout=0.5)
        node.resume()
        await connection.output(["true"])
        assert node.processes() == ["sleep 600"]
        node.kill("sleep")
        await until(lambda: node.processes() == [])
        await connection.close()

    asyncio.run(scenario())


def test_disk_sudo_and_programs_can_fail(lab: Lab, tmp_path: Path) -> None:
    node = lab.nodes[3]
    large = tmp_path / "large"
    large.write_bytes(bytes(1 << 20))
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho Python 3.9.2\n")
    other.chmod(0o755)

    async def scenario() -> None:
        connection = await Connection.open(node.server.host, lab.known_hosts)
        with node.small_disk(1 << 16), pytest.raises(DiskFull):
            await connection.upload(large, "large")
        with node.without_sudo(), pytest.raises(SudoRefused):
            await connection.output(["true"], sudo=True)
        with node.instead_of("/usr/bin/python3", other):
            assert await connection.output(["python3", "-V"]) == "Python 3.9.2\n"
        assert await connection.output(["true"], sudo=True) == ""
        assert await connection.output(["python3", "-V"]) != "Python 3.9.2\n"
        await connection.close()

    asyncio.run(scenario())


def test_nothing_is_left_of_a_laboratory_whose_owner_is_killed(lab: Lab, tmp_path: Path) -> None:
    """While another one stands, and goes on."""
    owner = subprocess.Popen(
        [sys.executable, "-c", LONELY, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip()
        assert address and address != lab.nodes[0].server.address
        link = f"lab{address.split('.')[2]}"
        assert link in links()
        owner.kill()
    asyncio.run(until(lambda: network.leftovers(mark_of(tmp_path)) == [] and link not in links()))
    assert told(lab, lab.nodes[0], "id", "-un").strip() == USER
