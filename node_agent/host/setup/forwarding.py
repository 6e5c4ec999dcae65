"""Enables forwarding on the interface, without ICMP redirects."""

from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import SetupOrder
from node_agent.host.setup.steps import Command, Step, command


def wanted_sysctls(order: SetupOrder) -> dict[str, str]:
    """Changes only this interface's switch: the global one would change all others for good.

    In a MANET every hop leaves by the interface it came in on. The kernel takes that for a detour and tells
    the sender to go directly (a redirect), which does not work for radios out of each other's range.
    """
    if not order.forwarding:
        return {}
    own = f"net/ipv4/conf/{order.interface}"
    return {
        f"{own}/forwarding": "1",
        f"{own}/accept_redirects": "0",
        f"{own}/send_redirects": "0",
        "net/ipv4/conf/all/send_redirects": "0",
    }


def forwarding_steps(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    return tuple(
        Step(_set(key, value), (_set(key, seen.sysctls[key]),))
        for key, value in wanted_sysctls(order).items()
        if seen.sysctls[key] != value
    )


def _set(key: str, value: str) -> Command:
    return command("sysctl", "-q", "-w", f"{key}={value}")
