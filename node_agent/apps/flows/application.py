"""The flows of one node: sends those that begin here, and counts what arrives of those that end here."""

from collections.abc import Sequence

from node_agent.apps.base import AppKind, AppStatus, Surroundings
from node_agent.apps.flows.account import SentAccount
from node_agent.apps.flows.belief import RECORDS
from node_agent.apps.flows.metrics import METRIC_KINDS
from node_agent.apps.flows.model import Flow, FlowsConfig, nodes_of, problems
from node_agent.apps.flows.schedule import schedule
from node_agent.apps.flows.tcp_sink import TcpSink, TcpSinks
from node_agent.apps.flows.tcp_source import TcpSource
from node_agent.apps.flows.transfer import Transfer
from node_agent.apps.flows.udp import Sending, UdpSink, UdpSinks, send_datagrams
from node_agent.apps.flows.wire import FlowKey
from node_agent.apps.tasks import Tasks
from node_agent.linkstate.overhead import OverheadSource
from node_agent.ports import DatagramSocket, Listener


class Flows:
    """An ``Application``. Second 0 of its records begins when it is opened."""

    def __init__(self, config: FlowsConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self._socket: DatagramSocket | None = None
        self._listener: Listener | None = None
        self._opened_ns: int | None = None
        self._started_ns = around.port.now_ns()
        self._tasks = Tasks(around.fail)
        self._udp_accounts: list[SentAccount] = []
        self._tcp_sources: list[TcpSource] = []
        from_node = {key.node: key for key in around.credentials.incoming("datagram").values()}
        udp: dict[bytes, UdpSink] = {}
        tcp: dict[bytes, TcpSink] = {}
        for flow in config.flows:
            if flow.sink != around.node:
                continue
            key = FlowKey(from_node[flow.source], flow.name)
            if flow.protocol == "udp":
                udp[key.id] = UdpSink(flow, key, self._opened, around.port, around.record)
            else:
                tcp[key.id] = TcpSink(flow, key, self._opened, around.port, around.record)
        self._sinks: list[UdpSink | TcpSink] = [*udp.values(), *tcp.values()]
        self._udp = UdpSinks(udp, around.port, around.refusals)
        peers = {node: at.host for node, at in around.addresses.items() if node != around.node}
        self._tcp = TcpSinks(tcp, peers, around.port, around.refusals)

    async def start(self) -> None:
        around = self._around
        port = around.addresses[around.node].port
        self._socket = await around.port.datagrams(port, self._udp.received)
        self._listener = await around.port.listen(port, self._tcp.handle)

    def open(self) -> None:
        if self._opened_ns is not None or self._socket is None:
            return
        self._opened_ns = self._around.port.now_ns()
        for flow in self._config.flows:
            if flow.source == self._around.node:
                self._open(flow, self._opened_ns, self._socket)

    async def stop(self) -> None:
        self._tasks.cancel()
        await self._tasks.wait()
        if self._listener is not None:
            self._listener.close()
        if self._socket is not None:
            self._socket.close()

    def sample(self) -> None:
        for account in self._udp_accounts:
            if (sample := account.sample(self._around.port.now_ns())) is not None:
                self._around.record(sample)
        for source in self._tcp_sources:
            source.sample()
        for sink in self._sinks:
            sink.sample()

    def status(self) -> AppStatus:
        parts = tuple(flow.name for flow in self._config.flows if flow.source == self._around.node)
        return AppStatus(True, parts)

    def overheads(self) -> Sequence[OverheadSource]:
        return ()

    def _opened(self) -> int:
        return self._started_ns if self._opened_ns is None else self._opened_ns

    def _open(self, flow: Flow, opened_ns: int, socket: DatagramSocket) -> None:
        around = self._around
        key = FlowKey(around.credentials.to(flow.sink, "datagram"), flow.name)
        sending = Sending(flow, key, around.addresses[flow.sink], around.boot)
        account = SentAccount(flow.name, opened_ns)
        trace = self._config.traces.get(flow.trace) if flow.trace else None
        if flow.protocol == "udp":
            self._udp_accounts.append(account)
            sends = schedule(flow, trace)
            run = send_datagrams(sending, sends, account, opened_ns, around.port, socket, around.record)
            self._tasks.spawn(f"flow {flow.name}", run)
        else:
            transfer = Transfer(flow, account, opened_ns, trace)
            source = TcpSource(sending, transfer, account, around.port, around.refusals, around.record)
            self._tcp_sources.append(source)
            self._tasks.spawn(f"flow {flow.name}", source.run())


FLOWS = AppKind(FlowsConfig, Flows, RECORDS, nodes_of, problems, metrics=METRIC_KINDS)
