import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import ParamSpec

import msgspec
import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.layout import Layout, RadioEnd, Route, numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.radio.client import RadioFailed, RadioProcess
from orchestrator.backends.netns.radio.config import RadioConfig, radio_config
from orchestrator.backends.netns.radio.lateness import LatenessReport
from orchestrator.errors import BadInput
from orchestrator.mobility.static import static_path
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.settings import Mac
from orchestrator.radio.survey import Links
from tests.kernel.inside import answered, icmp_socket, send_ping, udp_socket

P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


RANGE = RadioChoice("ns3-range")
"""Everything up to 250 m, nothing beyond."""


def row(count: int, static_neighbours: bool = True) -> Layout:
    layout = numbered([f"n{number}" for number in range(1, count + 1)])
    return replace(layout, static_neighbours=static_neighbours)


def places(layout: Layout, spacing: float = 200.0) -> Trace:
    return Trace({node.name: static_path((spacing * i, 0.0)) for i, node in enumerate(layout.nodes)})


def config_of(mark: Mark, layout: Layout, trace: Trace) -> RadioConfig:
    return radio_config(mark, layout, trace, RANGE, Mac(), seed=1)


@asynccontextmanager
async def on_air(
    mark: Mark, layout: Layout, trace: Trace, on_links: Callable[[Links], None] | None = None
) -> AsyncIterator[RadioProcess]:
    ends = network.up(layout, mark)
    radio = RadioProcess(on_links)
    try:
        await radio.start(config_of(mark, layout, trace), ends)
    finally:
        for descriptor in ends.values():
            os.close(descriptor)
    try:
        yield radio
    finally:
        await radio.close()


def pings(mark: Mark, node: str, to: IPv4Address, timeout: float = 5.0) -> bool:
    with icmp_socket(mark, node) as icmp:
        icmp.settimeout(timeout)
        send_ping(icmp, to)
        return answered(icmp, to)


def through(layout: Layout, relay: str) -> Layout:
    """The first and the last node reach each other over ``relay``."""
    first, *middle, last = layout.nodes
    via = next(node.radio.ip for node in layout.nodes if node.name == relay)
    there, back = (Route(IPv4Network(f"{node.radio.ip}/32"), via) for node in (last, first))
    return replace(layout, nodes=(replace(first, routes=(there,)), *middle, replace(last, routes=(back,))))


@in_loop
async def test_one_hop(mark: Mark) -> None:
    layout = row(2)
    async with on_air(mark, layout, places(layout)):
        assert await asyncio.to_thread(pings, mark, "n1", layout.nodes[1].radio.ip)


@in_loop
async def test_one_hop_over_raw_sockets(mark: Mark) -> None:
    layout = replace(row(2), radio_end=RadioEnd.PACKET)
    async with on_air(mark, layout, places(layout)):
        assert await asyncio.to_thread(pings, mark, "n1", layout.nodes[1].radio.ip)


@in_loop
async def test_two_hops_over_a_relay(mark: Mark) -> None:
    layout = through(row(3), "n2")
    async with on_air(mark, layout, places(layout)) as radio:
        assert await asyncio.to_thread(pings, mark, "n1", layout.nodes[2].radio.ip)
        report = await radio.stop()
    # There and back, each over two links.
    assert report.frames["acknowledged"] == report.deliveries == 4


@in_loop
async def test_out_of_range_a_frame_is_tried_seven_times_and_given_up(mark: Mark) -> None:
    layout = row(3)
    async with on_air(mark, layout, places(layout)) as radio:
        assert not await asyncio.to_thread(pings, mark, "n1", layout.nodes[2].radio.ip, 0.5)
        report = await radio.stop()
    assert (report.frames["given_up"], report.frames["timeouts"], report.deliveries) == (1, 7, 0)


@in_loop
async def test_neighbours_find_each_other_by_broadcast(mark: Mark) -> None:
    layout = row(3, static_neighbours=False)
    async with on_air(mark, layout, places(layout)) as radio:
        assert await asyncio.to_thread(pings, mark, "n2", layout.nodes[0].radio.ip)
        report = await radio.stop()
    assert report.frames["broadcasts"] >= 1


@in_loop
async def test_what_the_queue_has_no_room_for_is_counted(mark: Mark) -> None:
    layout = replace(row(2), queue_length=10)
    async with on_air(mark, layout, places(layout)) as radio:
        with udp_socket(mark, "n1") as udp:
            for _ in range(300):
                udp.sendto(bytes(1400), (str(layout.nodes[1].radio.ip), 9))
        report = await radio.stop()
    assert report.queue_drops["n1"] > 200
    assert report.queue_drops["n2"] == 0


@in_loop
async def test_stopping_leaves_a_complete_record(mark: Mark) -> None:
    layout = row(2)
    async with on_air(mark, layout, places(layout)) as radio:
        assert await asyncio.to_thread(pings, mark, "n1", layout.nodes[1].radio.ip)
        report = await radio.stop()
    place = mark.directory / "radio"
    assert msgspec.json.decode((place / "lateness.json").read_bytes(), type=LatenessReport) == report
    assert report.deliveries == sum(entry.count for entry in report.histogram) == 2
    links = records(place / "links.jsonl")
    assert [(link["src"], link["dst"], link["cost"]) for link in links] == [("n1", "n2", 1), ("n2", "n1", 1)]
    assert [record["node"] for record in records(place / "positions.jsonl")][:2] == ["n1", "n2"]
    sent = [(use["src"], use["attempted"], use["delivered"]) for use in records(place / "deliveries.jsonl")]
    assert sorted(sent) == [("n1", 1, 1), ("n2", 1, 1)]


def records(path: Path) -> Sequence[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@in_loop
async def test_a_node_that_leaves_is_no_longer_reached(mark: Mark) -> None:
    layout = row(2)
    leaving = (Waypoint(0.0, 200.0, 0.0), Waypoint(1.0, 200.0, 0.0), Waypoint(1.1, 300.0, 0.0))
    heard: asyncio.Queue[Links] = asyncio.Queue()
    trace = Trace({"n1": static_path((0.0, 0.0)), "n2": leaving})
    async with on_air(mark, layout, trace, heard.put_nowait) as radio:
        to = layout.nodes[1].radio.ip
        assert await asyncio.to_thread(pings, mark, "n1", to)
        async with asyncio.timeout(60):
            assert await heard.get() == {"n1": {"n2": 1.0}, "n2": {"n1": 1.0}}
            assert await heard.get() == radio.links() == {"n1": {}, "n2": {}}
        assert not await asyncio.to_thread(pings, mark, "n1", to, 0.3)


@in_loop
async def test_another_radio_takes_up_where_one_was_killed(mark: Mark) -> None:
    layout = row(2)
    async with on_air(mark, layout, places(layout)) as killed:
        assert killed.pid is not None
        os.kill(killed.pid, signal.SIGKILL)
        with pytest.raises(RadioFailed, match="the radio"):
            await killed.report()
        await gone(mark)
    second = RadioProcess()
    await second.start(config_of(mark, layout, places(layout)))
    try:
        assert await asyncio.to_thread(pings, mark, "n1", layout.nodes[1].radio.ip)
    finally:
        await second.stop()


async def gone(mark: Mark) -> None:
    def wait() -> None:
        deadline = time.monotonic() + 5.0
        while left := mark.processes():
            assert time.monotonic() < deadline, left
            time.sleep(0.01)

    await asyncio.to_thread(wait)


@in_loop
async def test_after_a_kill_the_network_can_be_taken_down(mark: Mark) -> None:
    layout = row(2)
    async with on_air(mark, layout, places(layout)) as radio:
        assert radio.pid is not None
        os.kill(radio.pid, signal.SIGKILL)
        assert await asyncio.to_thread(network.down, mark) == []


@in_loop
async def test_a_loop_that_dies_is_noticed(mark: Mark) -> None:
    layout = row(2)
    async with on_air(mark, layout, places(layout)) as radio:
        (loop,) = [process.pid for process in mark.processes() if process.pid != radio.pid]
        os.kill(loop, signal.SIGKILL)
        # At whatever moment the owner asks, it is told why, and does not wait for an answer.
        async with asyncio.timeout(30):
            for _ in range(20):
                with pytest.raises(RadioFailed, match="real-time loop ended"):
                    while True:
                        await radio.report()
                        await asyncio.sleep(0)
        with pytest.raises(RadioFailed, match="real-time loop ended"):
            radio.check()


@in_loop
async def test_it_ends_with_its_owner(mark: Mark) -> None:
    layout = row(2)
    async with on_air(mark, layout, places(layout)) as radio:
        await radio.close()
    await gone(mark)
    assert (mark.directory / "radio" / "lateness.json").exists()


@in_loop
async def test_a_bad_config_starts_nothing(mark: Mark) -> None:
    layout = row(2)
    config = config_of(mark, layout, Trace({"n1": static_path((0.0, 0.0))}))
    with pytest.raises(BadInput, match="no path for n2"):
        await RadioProcess().start(config, {})
    assert mark.processes() == []


@in_loop
async def test_a_frame_that_finds_the_air_idle_takes_its_time(mark: Mark) -> None:
    """Sent after pauses of every length, so that model time has had time to fall behind the clock."""
    layout = row(2)
    async with on_air(mark, layout, places(layout)):
        delays = await asyncio.to_thread(one_way_delays, mark, layout, pauses=(0.013, 0.037, 0.073, 0.091))
    # 1400 bytes of payload alone take more than a millisecond at 11 Mb/s.
    assert min(delays) > 0.001


def one_way_delays(mark: Mark, layout: Layout, pauses: tuple[float, ...]) -> list[float]:
    delays = []
    with udp_socket(mark, "n1") as sender, udp_socket(mark, "n2") as receiver:
        to = (str(layout.nodes[1].radio.ip), receiver.getsockname()[1])
        for pause in pauses * 3:
            time.sleep(pause)
            sent = time.monotonic()
            sender.sendto(bytes(1400), to)
            receiver.recv(2048)
            delays.append(time.monotonic() - sent)
    return delays
