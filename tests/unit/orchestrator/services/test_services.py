"""Routing daemons as values: what they are told, what they need, how their nodes' agents ask them."""

import shutil
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import msgspec
import pytest

from node_agent.aodv.daemon import PROTOCOL as AODV_PROTOCOL
from node_agent.aodv.process import ProcessConfig as AodvProcess
from node_agent.host.kernel_routes import OLSR_PROTOCOL
from node_agent.linkstate.registry import problems
from node_agent.manet.membership import ManetConfig
from node_agent.olsr.process import ProcessConfig as OlsrProcess
from orchestrator.errors import EXIT_FAILED, RoveError
from orchestrator.planning.sweep import cells
from orchestrator.services.aodv import Aodv, aodv_config
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.olsr import Olsr, olsr_config
from orchestrator.services.program import Argv
from orchestrator.services.registry import service_kind, service_of
from orchestrator.spec.routing import read_protocol
from tests.unit.rove_process import experiment_file, rove
from tests.unit.specs import experiment

KEY = bytes(range(32))
OWN_ROUTES = {"olsr": OLSR_PROTOCOL, "aodv": AODV_PROTOCOL}
PROTOCOLS = ("olsr", "olsrd", "olsrd2", "babel", "aodv")


def test_our_own_daemons_routes_can_be_told_from_others() -> None:
    assert {name: service(name).route_protocol for name in OWN_ROUTES} == OWN_ROUTES


@pytest.fixture
def place(tmp_path: Path) -> Place:
    own, network = IPv4Address("10.77.0.1"), IPv4Network("10.77.0.0/16")
    return Place("n1", own, network, "wlan0", tmp_path, 7, (own, own + 1), KEY)


def service(protocol: str, **keys: object) -> RoutingService:
    found = service_of(experiment(backend="netns", routing={"protocol": protocol, **keys}).routing)
    assert found is not None
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_has_a_daemon_and_agents_know_how_to_ask_it(protocol: str, place: Place) -> None:
    daemon = service(protocol)
    assert daemon.protocol == protocol
    assert type(daemon) is service_kind(protocol)
    assert problems(daemon.link_state()) == []
    program = daemon.program(place)
    if isinstance(program, Argv):
        assert program.argv[0] == daemon.executables[0].name
        named = [word for word in program.argv if word.startswith(str(place.directory))]
    else:
        assert daemon.executables == () and program.loaded in daemon.modules
        assert program.entry().arguments == {"config": program.config}
        named = [program.config]
    assert [Path(name).name for name in named] == list(daemon.files(place))


def test_ground_truth_needs_none() -> None:
    assert service_of(read_protocol("ground_truth")) is None


def test_our_daemons_read_what_they_are_told(place: Place) -> None:
    (told,) = service("olsr", hello="2s", hello_validity="20s", metric="hops").files(place).values()
    olsr = msgspec.json.decode(told, type=OlsrProcess)
    assert (olsr.interfaces, olsr.seed, olsr.olsr.quality) == (("wlan0",), 7, "hops")
    assert (olsr.olsr.hello_interval, olsr.olsr.hello_validity, olsr.olsr.tc_validity) == (2.0, 20.0, 15.0)
    (told,) = service("aodv", active_route="5s").files(place).values()
    aodv = msgspec.json.decode(told, type=AodvProcess)
    assert (aodv.manet, aodv.aodv.active_route_timeout) == (olsr.manet, 5.0)
    assert olsr.manet == ManetConfig(networks=("10.77.0.0/16",), members=("10.77.0.1", "10.77.0.2"))
    assert olsr.olsr.longest_validity == 40.0


@pytest.mark.parametrize("protocol", ["olsr", "aodv"])
def test_our_daemons_get_the_groups_key_if_they_are_to_authenticate(protocol: str, place: Place) -> None:
    (told,) = service(protocol, authentication=True).files(place).values()
    kind: type[OlsrProcess | AodvProcess] = OlsrProcess if protocol == "olsr" else AodvProcess
    config = msgspec.json.decode(told, type=kind)
    assert config.manet.key == KEY
    assert str(KEY) not in f"{place!r}{config!r}"


def test_olsrd_is_told_to_broadcast_from_an_address_without_a_network(place: Place) -> None:
    (text,) = service("olsrd", quality="etx_float", hello="2s", hello_validity="20s").files(place).values()
    lines = [line.strip() for line in text.splitlines()]
    assert 'Interface "wlan0"' in lines
    assert "IPv4Broadcast 255.255.255.255" in lines
    assert "HelloInterval 2.000" in lines and "HelloValidityTime 20.000" in lines
    assert 'LinkQualityAlgorithm "etx_float"' in lines
    assert f'LockFile "{place.directory}/olsrd.lock"' in lines


def test_olsrd_rates_links_also_where_agents_count_hops(place: Place) -> None:
    """At LinkQualityLevel 0 it would learn links without looking for new routes."""
    daemon = service("olsrd", metric="hops")
    (text,) = daemon.files(place).values()
    assert "LinkQualityLevel 2" in text and 'LinkQualityAlgorithm "etx_ff"' in text
    assert daemon.link_state().metric == "hops"
    assert read_protocol("olsrd").summary().startswith("olsrd (etx), hello 1 s")
    counting = experiment(backend="netns", routing={"protocol": "olsrd", "metric": "hops"}).routing
    assert counting.summary().endswith(", routes by etx_ff")
    (text,) = service("olsr", metric="hops").files(place).values()
    assert '"quality": "hops"' in text  # our own does both


def test_olsrd2_binds_to_ipv4_only(place: Place) -> None:
    """Nodes have no IPv6: it would try ::1 again and again, and write a line each time."""
    (text,) = service("olsrd2").files(place).values()
    sections = text.split("[")
    for section in ("telnet", "http"):
        assert f"{section}]\n    bindto 127.0.0.1\n" in sections


def test_babeld_keeps_its_files_to_itself_and_announces_its_own_address(place: Place) -> None:
    (text,) = service("babel", hello="2s").files(place).values()
    assert f"state-file {place.directory}/" in text and f"pid-file {place.directory}/" in text
    assert "redistribute local ip 10.77.0.1/32 eq 32" in text
    assert "type wireless hello-interval 2 update-interval 4" in text


def test_what_is_missing_is_said_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    service("olsr").require()
    service("aodv").require()
    with pytest.raises(RoveError) as raised:
        service("babel").require()
    assert str(raised.value) == (
        "routing protocol babel needs babeld, which this machine does not have\n"
        "apt install babeld; or use protocol: olsr, which comes with Rove"
    )
    assert raised.value.exit_code == EXIT_FAILED


@pytest.mark.skipif(shutil.which("olsrd2_static") is not None, reason="olsrd2 is installed here")
def test_a_run_that_lacks_a_program_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, backend="netns", routing="olsrd2")
    refused = rove(tmp_path / "runs", "run", str(file), "--no-analyze")
    assert refused.returncode == EXIT_FAILED
    assert "routing protocol olsrd2 needs olsrd2_static" in refused.stderr
    assert not (tmp_path / "runs").exists()


def test_the_default_is_our_own_olsr_and_a_word_stands_for_a_protocol() -> None:
    default = experiment().routing
    assert isinstance(default, Olsr)
    assert (default.hello, default.hello_validity, default.tc, default.tc_validity) == (1.0, 4.0, 1.0, 15.0)
    assert (default.metric, default.link_quality, default.ready_share) == ("etx", "etx_ff", 0.9)
    assert experiment(routing="olsr").routing == default == experiment(routing={"quorum": 0.9}).routing
    assert isinstance(experiment(routing="aodv").routing, Aodv)
    assert next(iter(experiment().resolved()["routing"])) == "protocol"


def test_aodv_notices_broken_links_by_the_best_that_its_backend_has() -> None:
    unsaid, hello = Aodv(protocol="aodv"), Aodv(protocol="aodv", detection="hello")
    assert [aodv_config(unsaid, feedback).detection for feedback in (True, False)] == ["feedback", "hello"]
    assert [aodv_config(hello, feedback).detection for feedback in (True, False)] == ["hello", "hello"]
    both = cells(experiment(routing="aodv", sweep={"backend": ["sim", "netns"]}))
    assert len(both) == 2


def test_fisheye_can_be_switched_off() -> None:
    assert olsr_config(Olsr()).fisheye
    assert not olsr_config(Olsr(fisheye=False)).fisheye
