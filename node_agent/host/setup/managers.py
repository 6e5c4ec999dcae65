"""NetworkManager, dhcpcd and wpa_supplicant: asked to leave an interface alone, and given it back."""

import re
from itertools import pairwise

from msgspec import Struct

from node_agent.host.setup.steps import SetupError, Step, command

_UNMANAGED, _CONNECTED = 10, 100


class Managers(Struct, frozen=True):
    """Who has a hand on the interface. ``network_manager`` is its state there, None if that does not run."""

    network_manager: int | None = None
    dhcpcd: bool = False
    supplicant_unit: str | None = None
    """The systemd unit that runs a wpa_supplicant of the interface's own."""


def read_device_state(output: str) -> int | None:
    """From `nmcli -t -f GENERAL.STATE device show X`, such as ``GENERAL.STATE:100 (connected)``."""
    found = re.match(r"GENERAL\.STATE:(\d+)", output)
    return int(found[1]) if found else None


def hands_off(interface: str, seen: Managers, exclusive: bool, works: bool) -> tuple[Step, ...]:
    """A radio changes its mode, so everybody must let go. A LAN that works stays with who made it work."""
    steps = []
    state = seen.network_manager
    if state is not None and state != _UNMANAGED and (exclusive or state != _CONNECTED):
        change = ("nmcli", "device", "set", interface, "managed")
        steps.append(Step(command(*change, "no"), (command(*change, "yes"),)))
    if seen.dhcpcd and (exclusive or not works):
        # It answers with a failure where it does not look after the interface.
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
            f"wpa_supplicant (process {supplicants[0]}) holds {interface}, and nobody here can be asked to "
            "end it and start it again: stop it"
        )
