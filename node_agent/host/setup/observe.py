"""Observes the node: the interface, its radio, the kernel's switches, and the interface's managers."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from node_agent.host.setup import facts, offload, programs
from node_agent.host.setup.forwarding import wanted_sysctls
from node_agent.host.setup.managers import Managers, read_device_state, supplicant_of
from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import Ibss, Mesh, SetupOrder
from node_agent.host.setup.shaping import TABLE_PREFIX, loses, queues
from node_agent.host.setup.steps import Command, SetupError
from node_agent.host.setup.wireless import RadioFacts, Wireless, read_radio, read_wireless

_PROC, _SYSCTLS, _INTERFACES = Path("/proc"), Path("/proc/sys"), Path("/sys/class/net")


def is_wireless(order: SetupOrder) -> bool:
    return isinstance(order.radio, Ibss | Mesh)


def programs_for(order: SetupOrder) -> Iterator[str]:
    yield "ip"
    if order.forwarding:
        yield "sysctl"
    if is_wireless(order):
        yield "iw"
    if loses(order):
        yield "nft"
    if queues(order):
        yield "tc"


def observe(order: SetupOrder) -> Observed:
    _refuse_absent(order.interface)
    try:
        return _observed(order)
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        raise SetupError(f"{order.interface}: {error}") from error


def _observed(order: SetupOrder) -> Observed:
    name = order.interface
    wireless, radio = _wireless(name) if is_wireless(order) else (None, None)
    return Observed(
        link=facts.read_facts(programs.output_of(*facts.facts_command(name))),
        routes=facts.read_routes(
            programs.output_of("ip", "-json", "-4", "route", "show", "table", "all", "dev", name)
        ),
        sysctls={key: (_SYSCTLS / key).read_text().strip() for key in wanted_sysctls(order)},
        root_queue=_root_queue(name) if queues(order) else "",
        tables=_tables() if loses(order) else (),
        offloads=offload.merging_offloads(name) if loses(order) or queues(order) else (),
        wireless=wireless,
        radio=radio,
        switched_off=_is_switched_off(name),
    )


def _refuse_absent(name: str) -> None:
    there = [each for _, each in socket.if_nameindex() if each != "lo"]
    if name not in there:
        raise SetupError(f"there is no interface {name} here: there is {', '.join(there) or 'none but lo'}")


def observe_managers(interface: str) -> Managers:
    running = _processes()
    state = None
    if any(process.name == "NetworkManager" for process in running) and programs.find("nmcli"):
        asked = programs.run(Command(("nmcli", "-t", "-f", "GENERAL.STATE", "device", "show", interface)))
        state = read_device_state(asked.stdout)
    unit = f"wpa_supplicant@{interface}.service"
    return Managers(
        network_manager=state,
        dhcpcd=any(process.name == "dhcpcd" for process in running) and programs.find("dhcpcd") is not None,
        supplicant_unit=unit if supplicants(interface) and _is_active(unit) else None,
    )


def supplicants(interface: str) -> tuple[int, ...]:
    return tuple(
        process.pid
        for process in _processes()
        if process.name == "wpa_supplicant" and supplicant_of(interface, process.argv)
    )


class _Process(NamedTuple):
    pid: int
    name: str
    argv: tuple[str, ...]


def _processes() -> list[_Process]:
    """Returns the processes of this network namespace: another one may have an interface of the same name."""
    own = (_PROC / "self/ns/net").readlink()
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "ns/net").readlink() == own:
                    argv = tuple(os.fsdecode(word) for word in (entry / "cmdline").read_bytes().split(b"\0"))
                    found.append(_Process(int(entry.name), (entry / "comm").read_text().strip(), argv))
            except OSError:
                continue  # it has ended meanwhile
    return found


def _is_active(unit: str) -> bool:
    if programs.find("systemctl") is None:
        return False
    return programs.run(Command(("systemctl", "is-active", "--quiet", unit))).returncode == 0


def _wireless(name: str) -> tuple[Wireless | None, RadioFacts | None]:
    info = programs.run(Command(("iw", "dev", name, "info")))
    if info.returncode:
        return None, None
    power_save = programs.run(Command(("iw", "dev", name, "get", "power_save"))).stdout
    wireless = read_wireless(info.stdout, power_save)
    return wireless, read_radio(programs.output_of("iw", f"phy#{wireless.radio}", "info"))


def _is_switched_off(name: str) -> bool:
    switches = (_INTERFACES / name / "phy80211").glob("rfkill*")
    return any((switch / kind).read_text().strip() == "1" for switch in switches for kind in ("soft", "hard"))


def _root_queue(name: str) -> str:
    return facts.read_root_queue(programs.output_of("tc", "-json", "qdisc", "show", "dev", name))


def _tables() -> tuple[str, ...]:
    done = programs.run(Command(("nft", "-j", "list", "tables", "netdev")))
    if done.returncode:
        return ()  # a kernel without nftables fails again when the rules are set, with a clear message
    listed = msgspec.json.decode(done.stdout)["nftables"]
    names = [entry["table"]["name"] for entry in listed if "table" in entry]
    return tuple(name for name in names if name.startswith(TABLE_PREFIX))
