"""The state of an interface that a set-up may change, as one value, and how two of them differ."""

from msgspec import Struct

from node_agent.host.setup.facts import InterfaceState
from node_agent.host.setup.wireless import RadioFacts, Wireless


class Observed(Struct, frozen=True):
    """Holds only what the order could change; the rest is empty."""

    link: InterfaceState
    routes: tuple[tuple[str, ...], ...] = ()
    sysctls: dict[str, str] = {}
    root_queue: str = ""
    tables: tuple[str, ...] = ()
    """nftables tables of family netdev whose names have our prefix."""
    offloads: tuple[str, ...] = ()
    """Offloads that merge or split frames and are on."""
    wireless: Wireless | None = None
    radio: RadioFacts | None = None
    switched_off: bool = False


def differences(before: Observed, after: Observed) -> tuple[str, ...]:
    """Returns what is not as it was, except what others added meanwhile."""
    name = before.link.name
    found = []
    if before.link.up != after.link.up:
        found.append(f"{name} was {_state(before.link.up)} and is {_state(after.link.up)}")
    found += _changed(f"{name}: address", before.link.addresses, after.link.addresses)
    missing = [route for route in before.routes if route not in after.routes]
    found += [f"{name}: route {' '.join(route)} is gone" for route in missing]
    for key, value in before.sysctls.items():
        if after.sysctls.get(key) != value:
            found.append(f"{key} was {value} and is {after.sysctls.get(key)}")
    if before.root_queue != after.root_queue:
        found.append(
            f"{name}: the queue was {before.root_queue or 'default'} and is {after.root_queue or 'default'}"
        )
    found += _changed("nftables: table", before.tables, after.tables)
    found += _changed(f"{name}: offload", before.offloads, after.offloads)
    if (
        before.wireless is not None
        and after.wireless is not None
        and before.wireless.kind != after.wireless.kind
    ):
        found.append(f"{name} was {before.wireless.kind} and is {after.wireless.kind}")
    return tuple(found)


def _state(up: bool) -> str:
    return "up" if up else "down"


def _changed(what: str, before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    gone = [f"{what} {each} is gone" for each in before if each not in after]
    return gone + [f"{what} {each} is left" for each in after if each not in before]
