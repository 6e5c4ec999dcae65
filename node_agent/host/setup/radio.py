"""Plans the commands that set an interface's mode and address, and the commands that undo them."""

from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import Ibss, Lan, Mesh, SetupOrder
from node_agent.host.setup.steps import Command, SetupError, Step, command
from node_agent.host.setup.wireless import RadioFacts, Wireless

_KINDS = {"managed": "managed", "IBSS": "ibss", "mesh point": "mp", "monitor": "monitor"}
"""iw's names for the same modes, in its output and in its arguments."""


def radio_steps(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    match order.radio:
        case None | Lan():
            mode: tuple[Step, ...] = _upped(order, seen)
        case Ibss() | Mesh() as radio:
            mode = _mode_steps(order.interface, radio, seen)
    return (*mode, *_address_steps(order, seen))


def _upped(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    if order.radio is None or seen.link.up:
        return ()
    return (Step(_link(order.interface, "up"), (_link(order.interface, "down"),)),)


def _address_steps(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    if order.address is None or order.address in seen.link.addresses:
        return ()
    change, to = ("ip", "address"), (order.address, "dev", order.interface)
    add = command(*change, "add", order.address, "broadcast", "+", "dev", order.interface)
    return (Step(add, (command(*change, "del", *to),)),)


def _mode_steps(interface: str, radio: Ibss | Mesh, seen: Observed) -> tuple[Step, ...]:
    now, facts = seen.wireless, seen.radio
    if now is None or facts is None:
        raise SetupError(f"{interface} is not a wireless interface: use setup mode lan for it")
    if seen.switched_off:
        raise SetupError(
            f"the radio of {interface} is switched off: rfkill unblock wlan "
            "(on Raspberry Pi OS, set the WLAN country first: raspi-config)"
        )
    kind = "IBSS" if isinstance(radio, Ibss) else "mesh point"
    _refuse_impossible(interface, kind, radio.frequency, now, facts)
    if (now.kind, now.ssid, now.frequency, seen.link.up) == (kind, radio.ssid, radio.frequency, True):
        return _awake(interface, now)
    steps = []
    if seen.link.up:
        back = [_link(interface, "up"), *_rejoin(interface, now), *_restored_routes(interface, seen)]
        steps.append(Step(_link(interface, "down"), tuple(back)))
    for address in reversed(seen.link.owned):  # deleting a network's first address deletes all
        add = command("ip", "address", "add", *address.restore, "dev", interface)
        if address.is_ipv4:  # an old network's address would draw traffic into the new one
            steps.append(Step(command("ip", "address", "del", address.text, "dev", interface), (add,)))
        elif seen.link.up:  # IPv6 addresses disappear with the link
            steps[0] = Step(steps[0].do, (*steps[0].undo, add))
    change = ("iw", "dev", interface, "set", "type")
    steps.append(Step(command(*change, _KINDS[kind]), (command(*change, _KINDS[now.kind]),)))
    steps.append(Step(_link(interface, "up"), (_link(interface, "down"),)))
    return (*steps, *_join(interface, radio), *_awake(interface, now))


def _join(interface: str, radio: Ibss | Mesh) -> tuple[Step, ...]:
    device = ("iw", "dev", interface)
    match radio:
        case Ibss():
            cell = (radio.bssid,) if radio.bssid else ()
            join = (*device, "ibss", "join", radio.ssid, str(radio.frequency), "fixed-freq", *cell)
            return (Step(command(*join), (command(*device, "ibss", "leave"),)),)
        case Mesh():
            mesh_join = (*device, "mesh", "join", radio.ssid, "freq", str(radio.frequency), "HT20")
            return (
                Step(command(*mesh_join), (command(*device, "mesh", "leave"),)),
                Step(command(*device, "set", "mesh_param", "mesh_fwding", "0")),
            )


def _awake(interface: str, now: Wireless) -> tuple[Step, ...]:
    """Switches power saving off: a radio that sleeps between beacons
    delays packets. Some drivers cannot do this."""
    change = ("iw", "dev", interface, "set", "power_save")
    if not now.power_save:
        return ()
    return (Step(command(*change, "off"), (command(*change, "on"),), optional=True),)


def _refuse_impossible(interface: str, kind: str, frequency: int, now: Wireless, facts: RadioFacts) -> None:
    if now.kind not in _KINDS:
        raise SetupError(f"{interface} is in use as {now.kind}: end that first")
    if now.kind == "mesh point" and now.frequency is not None:
        # iw does not show a mesh's name.
        raise SetupError(
            f"{interface} is in a mesh already, which could not be joined again: leave it first "
            f"(iw dev {interface} mesh leave), or use it as it is (setup: configured)"
        )
    if kind not in facts.modes:
        raise SetupError(f"the radio of {interface} has no mode {kind}: it has {', '.join(facts.modes)}")
    if frequency not in facts.frequencies:
        raise SetupError(f"the radio of {interface} cannot be tuned to {frequency} MHz: use another channel")
    if objection := facts.frequencies[frequency]:
        raise SetupError(
            f"the radio of {interface} may not send on {frequency} MHz here ({objection}): "
            "use another channel, or set the country (iw reg set)"
        )


def _rejoin(interface: str, was: Wireless) -> tuple[Command, ...]:
    if was.ssid is None or was.frequency is None:
        return ()
    if was.kind != "IBSS":
        return ()  # the manager of the access point's association restores it
    return (command("iw", "dev", interface, "ibss", "join", was.ssid, str(was.frequency)),)


def _restored_routes(interface: str, seen: Observed) -> list[Command]:
    return [command("ip", "route", "add", *route, "dev", interface) for route in seen.routes]


def _link(interface: str, state: str) -> Command:
    return command("ip", "link", "set", "dev", interface, state)
