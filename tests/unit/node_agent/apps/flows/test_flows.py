"""Flows between nodes: in virtual time on a modelled radio, and over this machine's loopback."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from node_agent.apps.flows.account import SentAccount
from node_agent.apps.flows.events import (
    FlowPacketReceived,
    FlowPacketSent,
    FlowReceived,
    FlowSent,
)
from node_agent.apps.flows.model import OnOff, Trace
from node_agent.apps.flows.schedule import NS, schedule
from node_agent.apps.flows.udp import Sending, send_datagrams
from node_agent.apps.flows.wire import FlowKey
from node_agent.ports import Address
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.transport.authentication import Credentials
from node_agent.transport.keys import keys_of
from tests.unit.networks import LoopbackNetwork, RadioNetwork
from tests.unit.node_agent.apps.flows.flow_nodes import SECRET, FlowNode, flow, flow_nodes, seconds_of

Test = Callable[[], Awaitable[None]]
NODES = ("a", "b", "c")


def in_virtual_time(test: Test) -> None:
    async def run() -> None:
        await test()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


def test_a_constant_rate_arrives_whole() -> None:
    async def test() -> None:
        nodes = flow_nodes(RadioNetwork(NODES), NODES, flow(rate=16_000.0, stop=5.0))
        await nodes.start()
        await nodes.run(6)
        await nodes.stop()
        sent, received = nodes["a"].last(FlowSent), nodes["b"].last(FlowReceived)
        assert (sent.packets, sent.bytes, sent.skipped) == (20, 10_000, 0)
        assert (received.packets, received.bytes, received.duplicates, received.late) == (20, 10_000, 0, 0)
        assert [each.packets for each in seconds_of(nodes["a"].of(FlowSent), "seconds")] == [4] * 5
        heard = list(seconds_of(nodes["b"].of(FlowReceived), "heard"))
        assert [each.packets for each in heard] == [4] * 5
        assert all(0 < each.base_ns + each.most_ns < NS // 100 for each in heard)
        assert not nodes["a"].of(FlowReceived) and not nodes["b"].of(FlowSent)

    in_virtual_time(test)


def test_records_are_compact_and_end_with_the_flow() -> None:
    async def test() -> None:
        nodes = flow_nodes(RadioNetwork(NODES), NODES, flow(rate=4_000_000.0, stop=2.0))
        await nodes.start()
        await nodes.run(20)
        await nodes.stop()
        assert len(nodes["a"].records) <= 6 and len(nodes["b"].records) <= 6
        assert nodes["b"].last(FlowReceived).packets == 2000

    in_virtual_time(test)


def test_losses_are_seen_by_the_second_of_sending() -> None:
    async def test() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, NODES, flow(rate=40_000.0, stop=6.0))
        await nodes.start()
        await nodes.run(2)
        network.move(b=10_000.0)
        await nodes.go_on(2)
        network.move(b=1.0)
        await nodes.go_on(3)
        await nodes.stop()
        assert nodes["a"].last(FlowSent).packets == 60
        heard = list(seconds_of(nodes["b"].of(FlowReceived), "heard"))
        assert [(each.second, each.packets) for each in heard] == [(0, 10), (1, 10), (4, 10), (5, 10)]

    in_virtual_time(test)


def test_the_same_seed_gives_the_same_records() -> None:
    runs: list[list[object]] = []

    async def test() -> None:
        talk = flow(rate=64_000.0, size=160, on_off=OnOff(1.0, 1.35, "exponential"))
        bulk = flow(name="bulk", protocol="tcp", source="c", size=4000, bytes=400_000)
        nodes = flow_nodes(RadioNetwork(NODES), NODES, talk, bulk)
        await nodes.start()
        await nodes.run(10)
        await nodes.stop()
        runs.append([record for node in nodes.values() for record in node.records])

    in_virtual_time(test)
    in_virtual_time(test)
    assert runs[0] == runs[1] and len(runs[0]) > 20


def test_a_transfer_by_tcp_arrives_whole() -> None:
    async def test() -> None:
        bulk = flow(protocol="tcp", size=8192, bytes=1_000_000)
        nodes = flow_nodes(RadioNetwork(NODES), NODES, bulk)
        await nodes.start()
        await nodes.run(20)
        await nodes.stop()
        sent, received = nodes["a"].last(FlowSent), nodes["b"].last(FlowReceived)
        assert sent.bytes == sent.acknowledged == received.bytes == 1_000_000
        assert (sent.connections, sent.failures) == (1, 0)

    in_virtual_time(test)


def test_tcp_goes_on_after_an_outage_without_loss() -> None:
    async def test() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, NODES, flow(protocol="tcp", size=1000, rate=80_000.0, stop=60.0))
        await nodes.start()
        await nodes.run(10)
        network.move(b=10_000.0)
        await nodes.go_on(30)
        assert nodes["a"].last(FlowSent).packets >= 390, "what is due counts while there is no connection"
        network.move(b=1.0)
        await nodes.go_on(40)
        await nodes.stop()
        sent, received = nodes["a"].last(FlowSent), nodes["b"].last(FlowReceived)
        assert sent.packets == received.packets == 600
        assert sent.connections >= 2 and sent.failures >= 1
        assert (received.duplicates, received.reordered) == (0, 0)
        worst = max(each.base_ns + each.most_ns for each in seconds_of(nodes["b"].of(FlowReceived), "heard"))
        assert 29 * NS < worst < 45 * NS, "the outage is part of the delay"

    in_virtual_time(test)


def test_tcp_goes_on_after_the_sink_was_started_anew() -> None:
    async def test() -> None:
        network = RadioNetwork(NODES)
        steady = flow(protocol="tcp", size=1000, rate=80_000.0, stop=30.0)
        nodes = flow_nodes(network, NODES, steady)
        await nodes.start()
        await nodes.run(5)
        await nodes["b"].stop()
        first = nodes["b"].last(FlowReceived).packets
        await nodes.go_on(3)
        nodes["b"] = FlowNode(network, "b", NODES, [steady], boot=1)
        await nodes["b"].app.start()
        await nodes.go_on(30)
        await nodes.stop()
        assert nodes["a"].last(FlowSent).acknowledged == 300_000
        assert 300 <= first + nodes["b"].last(FlowReceived).packets <= 310

    in_virtual_time(test)


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_a_source_that_was_started_anew_is_counted_apart(protocol: str) -> None:
    async def test() -> None:
        network = RadioNetwork(NODES)
        steady = flow(protocol=protocol, size=1000, rate=80_000.0)
        nodes = flow_nodes(network, NODES, steady)
        await nodes.start()
        await nodes.run(5)
        await nodes["a"].stop()
        nodes["a"] = FlowNode(network, "a", NODES, [steady], boot=1)
        await nodes["a"].app.start()
        await nodes.run(5)
        await nodes.stop()
        by_boot = {record.source_boot: record.packets for record in nodes["b"].of(FlowReceived)}
        assert 48 <= by_boot[0] <= 51 and 48 <= by_boot[1] <= 51

    in_virtual_time(test)


@pytest.mark.parametrize(("rate", "size"), [(1e10, 512), (1e9, 42)])
def test_a_rate_beyond_the_machines_keeps_nobody_waiting(rate: float, size: int) -> None:
    class Slow:
        """A machine that takes 1 µs to look at its clock and 10 µs to send."""

        ns = looks = 0

        def now_ns(self) -> int:
            self.looks += 1
            assert self.looks < 1000, "others are kept waiting"
            self.ns += 1000
            return self.ns

        def send(self, datagram: bytes, to: Address) -> None:
            self.ns += 10_000

    async def test() -> None:
        slow, account, fast = Slow(), SentAccount("f", 0), flow(rate=rate, size=size)
        key = FlowKey(Credentials("run", "a", keys_of(SECRET, "run", "a", NODES)).to("b", "datagram"), "f")
        sending = Sending(fast, key, Address("b", 1), 0)
        run = send_datagrams(sending, schedule(fast), account, 0, slow, slow, lambda event: None)  # type: ignore[arg-type]
        task = asyncio.create_task(run)
        while slow.ns < 1.1 * NS:
            slow.looks = 0
            await asyncio.sleep(0)
            if task.done():
                break
        if task.done():
            task.result()
        task.cancel()
        due_a_second_ago = (slow.ns / NS - 1) * rate / 8 / size
        assert account.skipped > 1000 and account.packets > 1000
        assert account.packets + account.skipped == pytest.approx(due_a_second_ago, rel=0.01)

    asyncio.run(test())


def test_a_trace_is_followed() -> None:
    async def test() -> None:
        trace = Trace((0, NS, NS, 3 * NS), (100, 200, 300, 1400))
        web = flow(trace="t", start=1.0)
        nodes = flow_nodes(RadioNetwork(NODES), NODES, web, traces={"t": trace})
        await nodes.start()
        await nodes.run(6)
        await nodes.stop()
        sent = list(seconds_of(nodes["a"].of(FlowSent), "seconds"))
        assert [(each.second, each.bytes) for each in sent] == [(1, 100), (2, 500), (4, 1400)]
        assert nodes["b"].last(FlowReceived).bytes == 2000

    in_virtual_time(test)


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_records_of_every_packet(protocol: str) -> None:
    async def test() -> None:
        each = flow(protocol=protocol, rate=8000.0, packets=5, records="packets")
        nodes = flow_nodes(RadioNetwork(NODES), NODES, each)
        await nodes.start()
        await nodes.run(5)
        await nodes.stop()
        assert [record.number for record in nodes["a"].of(FlowPacketSent)] == list(range(5))
        received = nodes["b"].of(FlowPacketReceived)
        assert [record.number for record in received] == list(range(5))
        assert [record.sent_ns for record in received] == [number * NS // 2 for number in range(5)]

    in_virtual_time(test)


def test_over_real_sockets() -> None:
    async def test() -> None:
        flows = [
            flow(rate=400_000.0, stop=1.0),
            flow(name="bulk", protocol="tcp", source="b", sink="a", size=8192, bytes=2_000_000),
            flow(name="paced", protocol="tcp", source="c", sink="a", size=1000, rate=400_000.0, stop=1.0),
        ]
        nodes = flow_nodes(LoopbackNetwork(NODES), NODES, *flows)
        await nodes.start()
        await nodes.run(2)
        await nodes.stop()
        sent = {record.flow: record for node in nodes.values() for record in node.of(FlowSent)}
        received = {record.flow: record for node in nodes.values() for record in node.of(FlowReceived)}
        assert sent["f"].packets == received["f"].packets == 100
        assert sent["bulk"].acknowledged == received["bulk"].bytes == 2_000_000
        assert sent["paced"].acknowledged == received["paced"].bytes == 50_000

    asyncio.run(test())
