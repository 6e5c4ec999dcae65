"""What a node is told for its set-up, as values; and what its programs print, read into values."""

from pathlib import Path

import msgspec
import pytest

from node_agent.host.setup import programs
from node_agent.host.setup.facts import FactsError, InterfaceState, read_facts, read_root_queue, read_routes
from node_agent.host.setup.forwarding import forwarding_steps, wanted_sysctls
from node_agent.host.setup.managers import Managers, read_device_state, release_steps, supplicant_of
from node_agent.host.setup.observe import programs_for
from node_agent.host.setup.observed import Observed, differences
from node_agent.host.setup.order import Ibss, Lan, Mesh, SetupOrder, ShapedLink, from_json, to_json
from node_agent.host.setup.process import plan
from node_agent.host.setup.shaping import shaping_steps, table_name
from node_agent.host.setup.steps import SetupError, Step, command
from node_agent.host.setup.wireless import RadioFacts, Wireless, read_radio, read_wireless
from orchestrator.spec.setup import frequency_of
from tests.kernel.iw_double import RADIO

PEER = "dc:a6:32:00:00:02"
IP_ADDRESS = """[{},{"ifindex":3,"ifname":"wlan0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],
"mtu":1500,"qdisc":"pfifo_fast","operstate":"UP","group":"default","txqlen":1000,"link_type":"ether",
"address":"DC:A6:32:00:00:01","broadcast":"ff:ff:ff:ff:ff:ff","addr_info":[
{"family":"inet","local":"192.168.1.21","prefixlen":24,"broadcast":"192.168.1.255","scope":"global",
"dynamic":true,"noprefixroute":true,"label":"wlan0","valid_life_time":86012,"preferred_life_time":75212},
{"family":"inet6","local":"2001:db8::21","prefixlen":64,"scope":"global",
"valid_life_time":4294967295,"preferred_life_time":4294967295},
{"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link",
"valid_life_time":4294967295,"preferred_life_time":4294967295}]}]"""
IP_ROUTE = """[{"dst":"default","gateway":"192.168.1.1","dev":"wlan0","protocol":"dhcp",
"prefsrc":"192.168.1.21","metric":600,"flags":["onlink"]},{"dst":"192.168.1.0/24","dev":"wlan0","protocol":"kernel","scope":"link",
"prefsrc":"192.168.1.21","metric":600,"flags":[]}]"""
IW_INFO = """Interface wlan0
\tifindex 3
\twdev 0x1
\taddr dc:a6:32:00:00:01
\tssid Home Net
\ttype managed
\twiphy 0
\tchannel 36 (5180 MHz), width: 80 MHz, center1: 5210 MHz
\ttxpower 31.00 dBm
"""


def told(steps: tuple[Step, ...]) -> list[str]:
    return [str(step.do) for step in steps]


def untold(steps: tuple[Step, ...]) -> list[str]:
    """The way back, as it is gone."""
    return [str(each) for step in reversed(steps) for each in step.undo]


def test_an_interface_as_ip_tells_of_it() -> None:
    state = read_facts(IP_ADDRESS)
    assert (state.name, state.hardware, state.up) == ("wlan0", "dc:a6:32:00:00:01", True)
    assert state.addresses == ("192.168.1.21/24", "2001:db8::21/64")
    assert " ".join(state.owned[0].restore) == (
        "192.168.1.21/24 broadcast 192.168.1.255 scope global label wlan0 valid_lft 86012 preferred_lft 75212"
    )
    assert read_routes(IP_ROUTE) == (
        ("default", "via", "192.168.1.1", "proto", "dhcp", "src", "192.168.1.21", "metric", "600", "onlink"),
    )
    assert read_routes("") == ()


@pytest.mark.parametrize(
    "output", ["", "[]", "{}", "[1]", "[{}]", '[{"ifname": "wlan0"}]', "Device not found"]
)
def test_what_ip_does_not_print_is_refused(output: str) -> None:
    with pytest.raises(FactsError, match="not what ip -json address prints"):
        read_facts(output)


def test_a_queue_is_somebodys_if_it_has_a_handle() -> None:
    assert read_root_queue('[{"kind":"mq","handle":"0:","root":true},{"kind":"fq","handle":"8:"}]') == ""
    assert read_root_queue('[{"kind":"cake","handle":"8001:","root":true}]') == "cake 8001:"


def test_a_radio_as_iw_tells_of_it() -> None:
    assert read_wireless(IW_INFO, "Power save: on\n") == Wireless("managed", 0, "Home Net", 5180, True)
    unjoined = "Interface wlan0\n\ttype mesh point\n\twiphy 2\n"
    assert read_wireless(unjoined, "") == Wireless("mesh point", 2)
    assert read_radio(RADIO) == RadioFacts(
        ("IBSS", "managed", "AP", "mesh point"),
        {2412: "", 2437: "", 2484: "disabled", 5180: "", 5260: "no IR"},
    )
    newer = RADIO.replace(" MHz [", ".0 MHz [")
    assert read_radio(newer) == read_radio(RADIO)


@pytest.mark.parametrize(
    ("channel", "frequency"), [(1, 2412), (6, 2437), (13, 2472), (14, 2484), (36, 5180), (165, 5825)]
)
def test_channels(channel: int, frequency: int) -> None:
    assert frequency_of(channel) == frequency


def test_an_order_travels_whole_and_is_checked_where_it_arrives() -> None:
    link = ShapedLink("n02", PEER, 0.1, 2e6, 0.01)
    order = SetupOrder("r1", "wlan0", "10.77.0.1/16", Mesh("net", 2412), True, (link,))
    assert from_json(to_json(order)) == order
    with pytest.raises(msgspec.ValidationError):
        from_json(to_json(order).replace(PEER.encode(), b"x; drop"))


OBSERVED = Observed(
    link=read_facts(IP_ADDRESS),
    routes=read_routes(IP_ROUTE),
    wireless=read_wireless(IW_INFO, "Power save: on\n"),
    radio=read_radio(RADIO),
)


def test_ad_hoc_mode_and_the_way_back_from_it() -> None:
    order = SetupOrder("r1", "wlan0", "10.77.0.1/16", Ibss("rove", 2437))
    steps = plan(order, OBSERVED)
    assert told(steps) == [
        "ip link set dev wlan0 down",
        "ip address del 192.168.1.21/24 dev wlan0",
        "iw dev wlan0 set type ibss",
        "ip link set dev wlan0 up",
        "iw dev wlan0 ibss join rove 2437 fixed-freq",
        "iw dev wlan0 set power_save off",
        "ip address add 10.77.0.1/16 broadcast + dev wlan0",
    ]
    assert untold(steps) == [
        "ip address del 10.77.0.1/16 dev wlan0",
        "iw dev wlan0 set power_save on",
        "iw dev wlan0 ibss leave",
        "ip link set dev wlan0 down",
        "iw dev wlan0 set type managed",
        "ip address add 192.168.1.21/24 broadcast 192.168.1.255 scope global label wlan0 "
        "valid_lft 86012 preferred_lft 75212 dev wlan0",
        "ip link set dev wlan0 up",
        "ip route add default via 192.168.1.1 proto dhcp src 192.168.1.21 metric 600 onlink dev wlan0",
        "ip address add 2001:db8::21/64 scope global dev wlan0",
    ]


def test_radios_that_cannot_be_had() -> None:
    order = SetupOrder("r1", "wlan0", "10.77.0.1/16", Mesh("rove", 2437))
    replaced = msgspec.structs.replace
    without_mesh = replaced(OBSERVED, radio=RadioFacts(("IBSS", "managed"), {2437: ""}))
    with pytest.raises(
        SetupError, match=r"^the radio of wlan0 has no mode mesh point: it has IBSS, managed$"
    ):
        plan(order, without_mesh)
    with pytest.raises(SetupError, match="switched off: rfkill unblock wlan"):
        plan(order, replaced(OBSERVED, switched_off=True))
    with pytest.raises(SetupError, match="wlan0 is in use as AP"):
        plan(order, replaced(OBSERVED, wireless=Wireless("AP", 0)))
    with pytest.raises(SetupError, match="in a mesh already"):
        plan(order, replaced(OBSERVED, wireless=Wireless("mesh point", 0, None, 2412)))


def test_a_lan_that_is_there_needs_nothing() -> None:
    assert plan(SetupOrder("r1", "wlan0", "192.168.1.21/24", Lan()), OBSERVED) == ()
    assert plan(SetupOrder("r1", "wlan0"), OBSERVED) == ()


def test_forwarding_is_switched_where_it_is_not() -> None:
    order = SetupOrder("r1", "eth0.7", forwarding=True)
    is_so = wanted_sysctls(order)
    assert forwarding_steps(order, msgspec.structs.replace(OBSERVED, sysctls=is_so)) == ()
    is_not = {**is_so, "net/ipv4/conf/eth0.7/forwarding": "0"}
    (step,) = forwarding_steps(order, msgspec.structs.replace(OBSERVED, sysctls=is_not))
    assert str(step.do) == "sysctl -q -w net/ipv4/conf/eth0.7/forwarding=1"
    assert str(step.undo[0]) == "sysctl -q -w net/ipv4/conf/eth0.7/forwarding=0"


def test_emulated_links() -> None:
    links = (
        ShapedLink("n02", PEER, 0.25, 2e6),
        ShapedLink("n03", "dc:a6:32:00:00:03", 1.0, None, 0.02),
        ShapedLink("n04", "dc:a6:32:00:00:04"),
    )
    steps = shaping_steps(SetupOrder("20261116 a", "eth0", links=links), OBSERVED)
    rules = steps[0]
    assert rules.do.input.splitlines() == [
        "table netdev rove-20261116-a {",
        "  chain links {",
        '    type filter hook ingress device "eth0" priority -300; policy accept;',
        f'    ether saddr {PEER} numgen random mod 1000000 < 250000 counter drop comment "n02"',
        '    ether saddr dc:a6:32:00:00:03 counter drop comment "n03"',
        "  }",
        "}",
    ]
    assert untold(steps) == [
        "tc qdisc del dev eth0 root handle 7e57:",
        "nft delete table netdev rove-20261116-a",
    ]
    assert told(steps)[1:] == [
        "tc qdisc add dev eth0 root handle 7e57: htb default 0",
        "tc class add dev eth0 parent 7e57: classid 7e57:1 htb rate 2000000bit burst 1600b cburst 1600b "
        "quantum 1514",
        "tc qdisc add dev eth0 parent 7e57:1 pfifo limit 50",
        f"tc filter add dev eth0 parent 7e57: protocol all prio 1 u32 match ether dst {PEER} flowid 7e57:1",
        "tc class add dev eth0 parent 7e57: classid 7e57:2 htb rate 100000000000bit burst 12500000b "
        "cburst 12500000b quantum 1514",
        "tc qdisc add dev eth0 parent 7e57:2 netem delay 20000us limit 10000",
        "tc filter add dev eth0 parent 7e57: protocol all prio 1 u32 match ether dst dc:a6:32:00:00:03 "
        "flowid 7e57:2",
        "tc class add dev eth0 parent 7e57: classid 7e57:3 htb rate 2000000bit burst 1600b cburst 1600b "
        "quantum 1514",
        "tc qdisc add dev eth0 parent 7e57:3 pfifo limit 50",
        "tc filter add dev eth0 parent 7e57: protocol all prio 1 u32 match u8 0x01 0x01 at -14 flowid 7e57:3",
    ]


def test_links_of_two_runs_do_not_mix() -> None:
    order = SetupOrder("r2", "eth0", links=(ShapedLink("n02", PEER, 0.25),))
    with pytest.raises(SetupError, match=r"nftables has rove-r1 of another run: end that run first"):
        shaping_steps(order, msgspec.structs.replace(OBSERVED, tables=(table_name("r1"),)))


def test_who_manages_an_interface_lets_go_of_it() -> None:
    everybody = Managers(100, True, "wpa_supplicant@wlan0.service")
    steps = release_steps("wlan0", everybody, exclusive=True, works=True)
    assert told(steps) == [
        "nmcli device set wlan0 managed no",
        "dhcpcd -x wlan0",
        "systemctl stop wpa_supplicant@wlan0.service",
    ]
    assert untold(steps) == [
        "systemctl start wpa_supplicant@wlan0.service",
        "dhcpcd -n wlan0",
        "nmcli device set wlan0 managed yes",
    ]
    # A LAN over which somebody may be logged in stays; one that is still asked for an address does not.
    assert release_steps("eth0", everybody, exclusive=False, works=True) == ()
    still_connecting = release_steps("eth0", Managers(70, True), exclusive=False, works=False)
    assert told(still_connecting) == ["nmcli device set eth0 managed no", "dhcpcd -x eth0"]
    assert release_steps("wlan0", Managers(10), exclusive=True, works=False) == ()


def test_managers_words() -> None:
    assert read_device_state("GENERAL.STATE:30 (disconnected)\n") == 30
    assert read_device_state("Error: Device 'wlan9' not found.\n") is None
    assert supplicant_of("wlan0", ("wpa_supplicant", "-B", "-iwlan0", "-c/etc/x.conf", ""))
    assert supplicant_of("wlan0", ("wpa_supplicant", "-i", "wlan0"))
    assert not supplicant_of("wlan0", ("wpa_supplicant", "-u", "-s", "-O", "/run/wpa_supplicant"))


def test_missing_programs_are_named_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_PLACES", str(tmp_path))
    (tmp_path / "ip").touch(0o755)
    order = SetupOrder("r1", "wlan0", None, Ibss("a", 2412), links=(ShapedLink("n02", PEER, 0.5),))
    with pytest.raises(SetupError, match=r"^iw and nft are not installed here: apt-get install iw nftables$"):
        programs.refuse_missing(programs_for(order))


def test_what_a_kernel_lacks_and_other_failures() -> None:
    step = Step(command("tc", "qdisc", "add"), lacking="this kernel has no such thing")
    assert programs.complaint(step, "Error: Specified qdisc kind is unknown.\n") == step.lacking
    assert (
        programs.complaint(step, "\nError: Invalid handle.\nmore\n") == "tc qdisc add: Error: Invalid handle."
    )


def test_only_what_is_missing_or_ours_is_a_difference() -> None:
    changed = Observed(
        link=InterfaceState("wlan0", "dc:a6:32:00:00:01", False),
        routes=(("10.0.0.0/8", "via", "10.77.0.2"),),
        tables=("rove-r1",),
        wireless=Wireless("IBSS", 0),
    )
    assert differences(OBSERVED, OBSERVED) == ()
    assert differences(OBSERVED, changed) == (
        "wlan0 was up and is down",
        "wlan0: address 192.168.1.21/24 is gone",
        "wlan0: address 2001:db8::21/64 is gone",
        "wlan0: route default via 192.168.1.1 proto dhcp src 192.168.1.21 metric 600 onlink is gone",
        "nftables: table rove-r1 is left",
        "wlan0 was managed and is IBSS",
    )
