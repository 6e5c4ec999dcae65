"""Asks NetworkManager, dhcpcd and wpa_supplicant to release an interface, and gives it back."""

import re
from itertools import pairwise

from msgspec import Struct

from node_agent.host.setup.steps import SetupError, Step, command

_UNMANAGED, _CONNECTED = 10, 100


class Managers(Struct, frozen=True):
    """Which managers control the interface. ``network_manager``: the
    device's state there; None if it does not run."""

    network_manager: int | None = None
    dhcpcd: bool = False
    supplicant_unit: str | None = None
    """The systemd unit of a wpa_supplicant for this interface alone."""


def read_device_state(output: str) -> int | None:
    """Reads the output of `nmcli -t -f GENERAL.STATE device show X`,
    e.g. ``GENERAL.STATE:100 (connected)``."""
    found = re.match(r"GENERAL\.STATE:(\d+)", output)
    return int(found[1]) if found else None


def release_steps(interface: str, seen: Managers, exclusive: bool, works: bool) -> tuple[Step, ...]:
    """Returns the steps that release the interface. A radio changes its mode, so every manager must release
    it (``exclusive``). A LAN interface that works stays with its manager."""
    steps = []
    state = seen.network_manager
    if state is not None and state != _UNMANAGED and (exclusive or state != _CONNECTED):
        change = ("nmcli", "device", "set", interface, "managed")
        steps.append(Step(command(*change, "no"), (command(*change, "yes"),)))
    if seen.dhcpcd and (exclusive or not works):
        # It fails if it does not manage the interface.
        steps.append(
            Step(command("dhcpcd", "-x", interface), (command("dhcpcd", "-n", interface),), optional=True)
        )
    if seen.supplicant_unit is not None and exclusive:
        unit = seen.supplicant_unit
        steps.append(Step(command("systemctl", "stop", unit), (command("systemctl", "start", unit),)))
    return tuple(steps)


def supplicant_of(interface: str, argv: tuple[str, ...]) -> bool:
    """Is this the command line of a wpa_supplicant for the interface?"""
    return f"-i{interface}" in argv or ("-i", interface) in pairwise(argv)


def refuse_held(interface: str, supplicants: tuple[int, ...]) -> None:
    if supplicants:
        raise SetupError(
            f"wpa_supplicant (process {supplicants[0]}) controls {interface}, and no service manager can "
            "stop it and start it again: stop it yourself"
        )
