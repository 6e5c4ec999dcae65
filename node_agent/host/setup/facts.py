"""Reads the output of `ip` and `tc` about an interface into values. Needs no root."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from node_agent.model.checked import Checked, Refused

_MOST_BYTES = 1024 * 1024
_LINKS: Checked[list[dict[str, Any]]] = Checked(list[dict[str, Any]], _MOST_BYTES)
_HARDWARE = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_FOR_EVER = 2**32 - 1


class FactsError(ValueError):
    """The output is not what `ip` prints; the message is one sentence."""


class Address(Struct, frozen=True):
    """``restore``: the arguments that give the address back to the interface."""

    text: str
    is_ipv4: bool
    restore: tuple[str, ...]


class InterfaceState(Struct, frozen=True):
    name: str
    hardware: str
    up: bool
    owned: tuple[Address, ...] = ()
    """Without IPv6 link-local addresses: the kernel makes those itself."""

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(address.text for address in self.owned)


def facts_command(interface: str) -> tuple[str, ...]:
    """Returns the command whose output ``read_facts`` reads."""
    return ("ip", "-json", "address", "show", "dev", interface)


def read_facts(output: str) -> InterfaceState:
    """Raises FactsError. The hardware address must be valid: other nodes' rules use it."""
    try:
        (link,) = (entry for entry in _LINKS.decode(output.encode(errors="replace")) if entry)
        hardware = link["address"].lower()
        if not _HARDWARE.fullmatch(hardware):
            raise ValueError("no hardware address")
        return InterfaceState(
            name=link["ifname"],
            hardware=hardware,
            up="UP" in link["flags"],
            owned=tuple(_address(each) for each in link["addr_info"] if not _is_link_local(each)),
        )
    except (Refused, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FactsError(f"not what ip -json address prints: {output[:80]!r}") from error


def _is_link_local(address: dict[str, Any]) -> bool:
    return (address["family"], address["scope"]) == ("inet6", "link")


def _address(said: dict[str, Any]) -> Address:
    text = f"{said['local']}/{said['prefixlen']}"
    words = (
        [f"{said['local']}", "peer", f"{said['address']}/{said['prefixlen']}"]
        if "address" in said
        else [text]
    )
    if "broadcast" in said:
        words += ["broadcast", said["broadcast"]]
    words += ["scope", said["scope"]]
    if said["family"] == "inet" and "label" in said:
        words += ["label", said["label"]]
    if said.get("valid_life_time", _FOR_EVER) != _FOR_EVER:
        words += ["valid_lft", str(said["valid_life_time"])]
        words += ["preferred_lft", str(said["preferred_life_time"])]
    return Address(text, said["family"] == "inet", tuple(words))


def read_routes(output: str) -> tuple[tuple[str, ...], ...]:
    """Returns IPv4 routes that the kernel does not make itself, as arguments of `ip route`."""
    return tuple(
        _route(each) for each in msgspec.json.decode(output or "[]") if each.get("protocol") != "kernel"
    )


def _route(said: dict[str, Any]) -> tuple[str, ...]:
    words = [*([said["type"]] if "type" in said else []), said["dst"]]
    names = {"gateway": "via", "protocol": "proto", "scope": "scope", "prefsrc": "src", "metric": "metric"}
    for key, word in (names | {"table": "table"}).items():
        if key in said:
            words += [word, str(said[key])]
    return *words, *(["onlink"] if "onlink" in said.get("flags", ()) else [])


def read_root_queue(output: str) -> str:
    """Returns the queueing discipline that somebody set on the interface; empty for the kernel's default."""
    for each in msgspec.json.decode(output or "[]"):
        if each.get("root") and each["handle"] != "0:":
            return f"{each['kind']} {each['handle']}"
    return ""
