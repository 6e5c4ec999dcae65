"""Emulates links: nftables drops incoming frames, `tc` limits the rate of outgoing ones and delays them.

A frame is dropped by its last sender, not by its origin, so packets over several hops can be lost at each
hop. Broadcasts are dropped like other frames, and sent at the slowest rate.
"""

import re
import sys
from collections.abc import Sequence

from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import SetupOrder
from node_agent.host.setup.steps import Command, SetupError, Step, command

TABLE_PREFIX = "rove-"
_SHARES = 1_000_000
_HANDLE = "7e57:"
_QUEUE = 50
_FRAME = 1514
_MEAN_FRAME = 500
_UNLIMITED = 100e9
_DELAY_LINE = 10_000
_BROADCAST = ("match", "u8", "0x01", "0x01", "at", "-14")
_NO_NFTABLES = (
    "this kernel has no nftables for interfaces: losses cannot be emulated; "
    "load nf_tables and nft_numgen or leave loss out"
)
_NO_HTB = "this kernel has no htb: rates cannot be emulated; load sch_htb or leave rate and delay out"
_NO_U32 = (
    "this kernel has no u32: rates cannot be emulated per link; load cls_u32 or leave rate and delay out"
)
_NO_NETEM = "this kernel has no netem: delay cannot be emulated; load sch_netem or leave delay out"


def loses(order: SetupOrder) -> bool:
    return any(link.loss > 0 for link in order.links)


def queues(order: SetupOrder) -> bool:
    return any(link.rate is not None or link.delay > 0 for link in order.links)


def table_name(run: str) -> str:
    return TABLE_PREFIX + re.sub(r"[^A-Za-z0-9_.-]", "-", run)


def shaping_steps(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    steps: list[Step] = []
    if (loses(order) or queues(order)) and seen.offloads:
        steps.append(_offload_step(order.interface, seen.offloads))
    if loses(order):
        if seen.tables:
            raise SetupError(f"nftables has {seen.tables[0]} of another run: end that run first (rove down)")
        table = table_name(order.run)
        delete = command("nft", "delete", "table", "netdev", table)
        rules = Command(("nft", "-f", "-"), _rules(order, table))
        steps.append(Step(rules, (delete,), lacking=_NO_NFTABLES))
    if queues(order):
        if seen.root_queue:
            raise SetupError(
                f"{order.interface} has a queueing discipline already ({seen.root_queue}), which could "
                "not be brought back: remove it, or leave rate and delay out"
            )
        steps += _queue_steps(order)
    return tuple(steps)


def _rules(order: SetupOrder, table: str) -> str:
    lines = [
        f"table netdev {table} {{",
        "  chain links {",
        f'    type filter hook ingress device "{order.interface}" priority -300; policy accept;',
    ]
    for link in order.links:
        if link.loss > 0:
            lost = f"numgen random mod {_SHARES} < {round(link.loss * _SHARES)} " if link.loss < 1 else ""
            lines.append(f'    ether saddr {link.hardware} {lost}counter drop comment "{link.node}"')
    return "\n".join([*lines, "  }", "}", ""])


def _offload_step(interface: str, offloads: tuple[str, ...]) -> Step:
    """Frames merged by the kernel would be dropped and queued as one."""
    switch = (sys.executable, "-m", "node_agent.host.setup.offload", interface)
    return Step(command(*switch, "off", *offloads), (command(*switch, "on", *offloads),))


def _queue_steps(order: SetupOrder) -> list[Step]:
    device = ("dev", order.interface)
    shaped = [link for link in order.links if link.rate is not None or link.delay > 0]
    root = command("tc", "qdisc", "add", *device, "root", "handle", _HANDLE, "htb", "default", "0")
    undo = command("tc", "qdisc", "del", *device, "root", "handle", _HANDLE)
    steps = [Step(root, (undo,), lacking=_NO_HTB)]
    for number, link in enumerate(shaped, start=1):
        chosen = ("match", "ether", "dst", link.hardware)
        steps += _class_steps(device, number, link.rate, link.delay, chosen)
    rates = [link.rate for link in shaped if link.rate is not None]
    if rates:
        steps += _class_steps(device, len(shaped) + 1, min(rates), 0.0, _BROADCAST)
    return steps


def _class_steps(
    device: Sequence[str], number: int, rate: float | None, delay: float, chosen: Sequence[str]
) -> list[Step]:
    name = f"{_HANDLE}{number:x}"
    bits = _UNLIMITED if rate is None else rate
    burst = f"{max(1600, round(bits / 8 / 1000))}b"
    limits = ("rate", f"{round(bits)}bit", "burst", burst, "cburst", burst, "quantum", str(_FRAME))
    queue: tuple[str, ...] = ("pfifo", "limit", str(_QUEUE))
    if delay > 0:
        on_the_way = _DELAY_LINE if rate is None else _QUEUE + round(delay * rate / 8 / _MEAN_FRAME)
        queue = ("netem", "delay", f"{round(delay * 1e6)}us", "limit", str(on_the_way))
    choice = ("protocol", "all", "prio", "1", "u32", *chosen, "flowid", name)
    return [
        Step(command("tc", "class", "add", *device, "parent", _HANDLE, "classid", name, "htb", *limits)),
        Step(
            command("tc", "qdisc", "add", *device, "parent", name, *queue), lacking=_NO_NETEM if delay else ""
        ),
        Step(command("tc", "filter", "add", *device, "parent", _HANDLE, *choice), lacking=_NO_U32),
    ]
