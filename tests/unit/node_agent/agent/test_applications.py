"""Several applications on one agent, and applications that Rove does not know."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig, BadConfig, check, watched_hosts
from node_agent.apps.base import AppConfig, AppKind, AppStatus, AppUnusable, Surroundings, Watched
from node_agent.apps.dataflow.config import DataflowConfig, Switching
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.apps.registry import APPLICATIONS
from node_agent.linkstate.overhead import OverheadSource
from node_agent.model.telemetry import Event, RoutingOverhead
from node_agent.ports import Address
from node_agent.telemetry.kinds import RecordKinds
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.telemetry.segments import inspect, read_records
from node_agent.transport.keys import keys_of
from tests.unit.networks import LoopbackNetwork, Network, RadioNetwork
from tests.unit.node_agent.agent.test_agent import (
    ALONE,
    KEY,
    ROOMY,
    finite_chain,
    on_loopback,
    plan,
    run,
    until,
)

NODES = ("n1", "n2", "n3", "n4")
Record = dict[str, Any]


class Testbed:
    """The agents of some nodes, which all run the same applications."""

    __test__ = False

    def __init__(self, directory: Path, network: Network, *apps: AppConfig, **settings: Any) -> None:
        self.directory = directory
        addresses = {node: network.address(node) for node in NODES}
        self.agents = {}
        for node in NODES:
            port = network.port(node)
            config = AgentConfig("run", node, addresses, keys_of(KEY, "run", node, NODES), apps, **settings)
            log = SegmentLog(directory / node, "run", node, port.now_ns)
            self.agents[node] = Agent(config, port, network, log)

    async def start(self) -> None:
        for agent in self.agents.values():
            await agent.start()
        await asyncio.sleep(0.5)
        assert all([await agent.ways() for agent in self.agents.values()])
        assert all(agent.ready for agent in self.agents.values())
        for agent in self.agents.values():
            agent.open_sources()

    async def stop(self) -> None:
        for agent in self.agents.values():
            await agent.stop("done")
            assert agent.failure is None

    def records(self) -> list[Record]:
        return [record for node in NODES for record in tuple_by_tuple(read_records(self.directory / node))]

    def delivered(self) -> Counter[str]:
        return Counter(r["app"] for r in self.records() if r["kind"] == "tuple_delivered")


def query(name: str, tuples: int, nodes: Sequence[str] = NODES, **settings: Any) -> AppConfig:
    """All have operators and replicas of the same names."""
    placed = {operator: (node,) for operator, node in zip(ALONE, nodes, strict=True)}
    return DataflowConfig(plan(finite_chain(tuples), placed), limits=ROOMY, **settings).as_app(name)


def test_two_queries_on_the_same_agents_have_results_of_their_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        queries = query("there", 60), query("back", 40, NODES[::-1])
        testbed = Testbed(tmp_path, RadioNetwork(NODES), *queries)
        await testbed.start()
        await asyncio.sleep(10)
        await testbed.stop()
        assert testbed.delivered() == {"there": 60, "back": 40}
        at = {(r["app"], r["node"]) for r in testbed.records() if r["kind"] == "tuple_delivered"}
        assert at == {("there", "n4"), ("back", "n1")}
        assert all(inspect(tmp_path / node).complete for node in NODES)

    run(scenario)


def test_two_queries_on_real_sockets(tmp_path: Path) -> None:
    async def scenario() -> None:
        queries = query("there", 30), query("back", 20, NODES[::-1])
        testbed = Testbed(tmp_path, LoopbackNetwork(NODES, apps=2), *queries, sample_period=0.05)
        await testbed.start()
        await until(lambda: testbed.delivered() == {"there": 30, "back": 20})
        await testbed.stop()

    on_loopback(scenario)


def test_every_record_says_which_application_it_is_of(tmp_path: Path) -> None:
    async def scenario() -> None:
        exchange = Switching(period=0.5, mode=Mode.EXCHANGE)
        queries = query("a", 20, switching=exchange), query("b", 20, switching=exchange)
        testbed = Testbed(tmp_path, RadioNetwork(NODES), *queries, overhead_period=1.0)
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        by_kind: dict[str, set[str]] = {}
        for record in testbed.records():
            by_kind.setdefault(record["kind"], set()).add(record["app"])
        for kind in ("agent_start", "agent_stop"):
            assert by_kind.pop(kind) == {""}
        # Each query counts what its own exchange has sent.
        assert "routing_overhead" in by_kind
        assert set(map(frozenset, by_kind.values())) == {frozenset("ab")}

    run(scenario)


def test_what_is_said_to_one_application_is_nothing_to_another(tmp_path: Path) -> None:
    """Keys are bound to the application: whoever listens at its port does not take its messages."""

    async def scenario() -> None:
        network = RadioNetwork(NODES)
        testbed = Testbed(tmp_path, network, query("there", 20))
        addresses = {node: network.address(node) for node in NODES}
        keys = keys_of(KEY, "run", "n2", NODES)
        log = SegmentLog(tmp_path / "other", "run", "n2", network.port("n2").now_ns)
        config = AgentConfig("run", "n2", addresses, keys, (query("elsewhere", 20),))
        await testbed.agents.pop("n2").stop("another one takes its place")
        stranger = Agent(config, network.port("n2"), network, log)
        await stranger.start()
        for agent in testbed.agents.values():
            await agent.start()
            agent.open_sources()
        await asyncio.sleep(5)
        assert testbed.delivered() == {}
        assert {refusal.reason for refusal in stranger.refusals} == {"stranger"}
        await stranger.stop("done")
        await testbed.stop()

    run(scenario)


class Tick(Event, tag="test_tick", frozen=True):
    number: int


class TickerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    fails: str = ""
    watches: tuple[str, ...] = ()


class Ticker:
    """An application that only counts. It fails where its configuration says."""

    def __init__(self, config: TickerConfig, around: Surroundings) -> None:
        self.config = config
        self.around = around
        self.calls: list[str] = []
        self._do("build", AppUnusable)
        self._do("construct")

    async def start(self) -> None:
        self._do("start")

    def open(self) -> None:
        self._do("open")

    async def stop(self) -> None:
        self._do("stop")

    def sample(self) -> None:
        self._do("sample")
        self.around.record(Tick(len(self.calls)))
        if self.config.fails == "later":
            self.around.fail("counting", ArithmeticError("out of numbers"))

    def status(self) -> AppStatus:
        return AppStatus(True, ("tick",))

    def overheads(self) -> Sequence[OverheadSource]:
        return (self,)

    async def read(self) -> tuple[RoutingOverhead, ...]:
        return (RoutingOverhead("ticks", "tick", len(self.calls), 0, 0, 0),)

    def _do(self, what: str, error: type[Exception] = ValueError) -> None:
        self.calls.append(what)
        if self.config.fails == what:
            raise error(f"cannot {what}")


def _watched(config: TickerConfig, node: str) -> Watched:
    return Watched(config.watches[:1], config.watches)


def _problems(config: TickerConfig, node: str) -> Sequence[str]:
    if config.fails == "problems":
        raise KeyError("cannot say")
    return ()


TICKER = AppKind(TickerConfig, Ticker, RecordKinds((Tick,)), problems=_problems, watched=_watched)


@contextmanager
def ticker() -> Iterator[None]:
    APPLICATIONS.register("ticker", TICKER)
    try:
        yield
    finally:
        APPLICATIONS.unregister("ticker")


@pytest.fixture(autouse=True)
def _ticker() -> Iterator[None]:
    with ticker():
        yield


def one_agent(tmp_path: Path, network: Network, *apps: AppConfig, **settings: Any) -> Agent:
    port = network.port("n1")
    addresses = {"n1": network.address("n1")}
    config = AgentConfig("run", "n1", addresses, {"n1": bytes(32)}, apps, **settings)
    return Agent(config, port, network, SegmentLog(tmp_path, "run", "n1", port.now_ns))


def ticking(name: str = "clock", **settings: Any) -> AppConfig:
    return AppConfig.of(name, "ticker", TickerConfig(**settings))


def alone(tmp_path: Path, act: Callable[[Agent], Any], *apps: AppConfig, **settings: Any) -> None:
    async def scenario() -> None:
        await act(one_agent(tmp_path, RadioNetwork(("n1",)), *apps, **settings))

    run(scenario)


def test_an_application_from_elsewhere_is_run_like_ours(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        clock = agent.apps["clock"]
        assert isinstance(clock, Ticker)
        await agent.start()
        before = agent.ready  # nobody has asked the link state yet
        assert (before, await agent.ways(), agent.ready) == (False, {}, True)
        agent.open_sources()
        await asyncio.sleep(2.5)
        await agent.stop("done")
        assert clock.calls == ["build", "construct", "start", "open", "sample", "sample", "stop", "sample"]
        around = clock.around
        assert (around.app, around.run, around.node, around.boot) == ("clock", "run", "n1", 1)
        records = list(read_records(tmp_path))
        assert records[0]["replicas"] == ["tick"]
        kinds = [(r["kind"], r["app"]) for r in records]
        assert kinds.count(("test_tick", "clock")) == 3
        assert kinds[-3:] == [("routing_overhead", "clock"), ("test_tick", "clock"), ("agent_stop", "")]

    alone(tmp_path, act, ticking())


def test_an_agent_is_not_ready_before_the_link_state_tells_costs(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("n1",))
        network.blind = True
        agent = one_agent(tmp_path, network, ticking())
        await agent.start()
        assert (await agent.ways(), agent.ready) == ({}, False)
        network.blind = False
        await agent.ways()
        assert agent.ready
        await agent.stop("done")

    run(scenario)


def test_each_application_has_a_port_and_keys_of_its_own(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        first, second = agent.apps.values()
        assert isinstance(first, Ticker) and isinstance(second, Ticker)
        ports = [app.around.addresses["n1"].port for app in (first, second)]
        assert ports[1] == ports[0] + 1
        assert first.around.credentials.keys != second.around.credentials.keys
        assert first.around.core is second.around.core
        await agent.stop("done")

    alone(tmp_path, act, ticking("first"), ticking("second"))


def test_applications_see_what_nodes_cost(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("n1", "n2"))
        agent = one_agent(tmp_path, network, ticking(), node_costs={"n2": 5.0})
        clock = agent.apps["clock"]
        assert isinstance(clock, Ticker)
        graph = await clock.around.link_state.cost_graph()
        assert (graph.costs["n1"]["n2"], graph.costs["n2"]["n1"]) == (6.0, 1.0)
        await agent.stop("done")

    run(scenario)


def test_the_nodes_that_applications_watch_are_watched_once() -> None:
    addresses = {node: Address(f"10.0.0.{i}", 7400) for i, node in enumerate(NODES)}
    apps = (ticking("a", watches=("n2", "n3")), ticking("b", watches=("n3", "n1", "n4")))
    config = AgentConfig("run", "n1", addresses, keys_of(KEY, "run", "n1", NODES), apps)
    watched = watched_hosts(config, check(config))
    assert watched == (("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "10.0.0.2", "10.0.0.3"))


@pytest.mark.parametrize(
    ("fails", "reason"),
    [
        ("later", "clock: counting: ArithmeticError: out of numbers"),
        ("stop", "clock: stop: ValueError: cannot stop"),
        ("sample", "clock: sample: ValueError: cannot sample"),
        ("open", "clock: open: ValueError: cannot open"),
    ],
)
def test_the_failure_of_an_application_is_the_agents(tmp_path: Path, fails: str, reason: str) -> None:
    async def act(agent: Agent) -> None:
        await agent.start()
        agent.open_sources()
        await asyncio.sleep(1.5)
        await agent.stop("done")
        assert str(agent.failure) == reason
        assert inspect(tmp_path).complete

    alone(tmp_path, act, ticking("other"), ticking(fails=fails))


def test_an_application_that_does_not_start_stops_the_agent(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        with pytest.raises(ValueError, match="cannot start"):
            await agent.start()
        other = agent.apps["other"]
        assert isinstance(other, Ticker)
        assert other.calls == ["build", "construct", "start", "stop", "sample"]
        assert [r["reason"] for r in read_records(tmp_path) if r["kind"] == "agent_stop"] == [
            "could not start: cannot start"
        ]

    alone(tmp_path, act, ticking("other"), ticking(fails="start"))


def of_kind(kind: str) -> AppConfig:
    return AppConfig.of("f", kind, TickerConfig())


BROKEN = AppConfig("odd", "ticker", msgspec.Raw(b'{"fails": 7}'))


@pytest.mark.parametrize(
    ("apps", "message"),
    [
        ((of_kind("tickr"),), "f: there is no application 'tickr'; did you mean 'ticker'"),
        ((of_kind("zzz"),), "f: there is no application 'zzz'; there are query, "),
        ((BROKEN,), r"odd: Expected `str`, got `int` - at `\$.fails`"),
        ((ticking("a"), ticking("b"), ticking("a")), "there are several applications named 'a'"),
        ((ticking(""),), "an application has no name"),
        ((ticking(fails="build"),), "agent n1 cannot run: clock: cannot build"),
        (
            (ticking(fails="construct"),),
            r"agent n1 cannot run: clock: test_applications.py, line \d+: ValueError: cannot construct",
        ),
        (
            (ticking(fails="problems"),),
            r"agent n1 cannot run: clock: test_applications.py, line \d+: KeyError: 'cannot say'",
        ),
        ((query("q", 1),), "node n2 has no address"),
    ],
)
def test_applications_that_cannot_run_are_refused_at_once(
    tmp_path: Path, apps: tuple[AppConfig, ...], message: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(BadConfig, match=message):
            one_agent(tmp_path, RadioNetwork(("n1",)), *apps)

    run(scenario)
