"""Runs one bulk stream over a chain of virtual hosts on the modelled channel, as ns-3's TCP
rows measure it.
"""

from node_agent.ports import Address, Stream
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import NS, VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from node_agent.ports.virtual.segment import StreamConfig
from orchestrator.radio.dcf_medium import DcfMedium
from orchestrator.radio.settings import Mac, Radio

SPACING_M = 200.0
PORT = 5000
# NewReno as in the reference: 1448-byte segments, 128 KiB buffers, a least timeout of 1 s, ACKs for every
# second segment or after 200 ms.
STREAMS = StreamConfig(
    mss=1448,
    initial_window=10,
    send_buffer=131072,
    receive_buffer=131072,
    min_rto_ns=1_000_000_000,
    delayed_ack_ns=200_000_000,
    give_up_ns=60_000_000_000,
)


def tcp_chain(
    radio: Radio,
    mac: Mac,
    hops: int,
    seconds: float,
    seed: int,
    warmup: float = 5.0,
    streams: StreamConfig = STREAMS,
) -> float:
    """Returns the application's Mb/s at the last node."""
    loop = VirtualLoop()
    nodes = [f"n{index}" for index in range(hops + 1)]
    positions = [(SPACING_M * index, 0.0) for index in range(hops + 1)]
    medium = DcfMedium(loop, nodes, positions, radio, mac, seed)
    hosts = []
    for index, node in enumerate(nodes):

        def next_hop(destination: str, here: int = index) -> str:
            target = nodes.index(destination)
            return nodes[here + 1] if target > here else nodes[here - 1]

        hosts.append(VirtualHost(node, node, loop, medium, next_hop, streams))
    arrived = 0

    async def swallow(stream: Stream) -> None:
        nonlocal arrived
        while True:
            await stream.read_exactly(streams.mss)
            arrived += streams.mss

    async def run() -> None:
        await VirtualPort(hosts[-1], seed).listen(PORT, swallow)
        stream = await VirtualPort(hosts[0], seed).connect(Address(nodes[-1], PORT), timeout=30.0)
        block = bytes(16 * streams.mss)
        while True:
            await stream.write(block)

    task = loop.create_task(run())
    loop.run_until_ns(round(warmup * NS))
    before = arrived
    loop.run_until_ns(round((warmup + seconds) * NS))
    goodput = (arrived - before) * 8 / seconds / 1e6
    for host in hosts:
        host.close()
    task.cancel()
    loop.run_until_ns(loop.now_ns())
    loop.close()
    return goodput
