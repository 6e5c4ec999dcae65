"""Which routes a change of the links asks for."""

from ipaddress import IPv4Address

from orchestrator.backends.netns import netlink
from orchestrator.backends.netns.routes import orders, tables

HOSTS = {name: IPv4Address(f"10.77.0.{number}") for number, name in enumerate("abcd", start=1)}
LINE = {"a": {"b": 1.0}, "b": {"a": 1.0, "c": 1.0}, "c": {"b": 1.0}, "d": {}}
WLAN = 7


def test_everyone_knows_the_next_hop_to_whom_they_can_reach() -> None:
    assert tables(LINE, HOSTS) == {
        "a": {"b": "b", "c": "b"},
        "b": {"a": "a", "c": "c"},
        "c": {"a": "b", "b": "b"},
        "d": {},
    }


def test_without_relays_only_neighbours_are_reached() -> None:
    assert tables(LINE, HOSTS, relays=False) == {
        "a": {"b": "b"},
        "b": {"a": "a", "c": "c"},
        "c": {"b": "b"},
        "d": {},
    }


def test_the_cheapest_way_is_taken_even_past_a_direct_link() -> None:
    links = {"a": {"b": 1.0, "c": 5.0}, "b": {"c": 1.0}, "c": {}, "d": {}}
    assert tables(links, HOSTS)["a"] == {"b": "b", "c": "b"}


def test_only_differences_are_asked_for() -> None:
    old = {"b": "b", "c": "b", "d": "b"}
    assert list(orders(old, dict(old), HOSTS, WLAN)) == []
    assert list(orders(old, {"b": "b", "c": "c"}, HOSTS, WLAN)) == [
        netlink.remove_host_route(HOSTS["d"]),
        netlink.set_host_route(HOSTS["c"], None, WLAN),
    ]
    assert list(orders({}, {"c": "b"}, HOSTS, WLAN)) == [netlink.set_host_route(HOSTS["c"], HOSTS["b"], WLAN)]
