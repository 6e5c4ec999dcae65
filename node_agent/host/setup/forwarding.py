"""Passing on for others what comes in on the interface, without telling them of shorter ways."""

from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import SetupOrder
from node_agent.host.setup.steps import Command, Step, command


def wanted_sysctls(order: SetupOrder) -> dict[str, str]:
    """Only this interface's switch: the one for all would change others with it, for good.

    Every hop of a MANET goes out where it came in. A kernel takes that for a detour and tells the sender to
    go directly (redirects), which radios out of each other's reach cannot.
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
