"""Besieges routing daemons: checks that they live, converge, and leave all other routes alone."""

import base64
import random
import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from benchmarks.attacks.live import neighbour
from benchmarks.attacks.live.airs import HONEST, Air, Route, daemons
from benchmarks.attacks.live.neighbour import Voice
from benchmarks.attacks.live.siege import (
    MOST_DESCRIPTORS,
    MOST_LOG_BYTES,
    MOST_MEGABYTES,
    NODE,
    STRANGER,
    Besieged,
    Tell,
)
from benchmarks.radio.tap import lacking
from node_agent.aodv import wire as aodv
from node_agent.olsr.config import OlsrConfig

CONVERGED_S = 40.0
FAST = OlsrConfig(hello_interval=0.5, hello_validity=5.0, tc_interval=1.0, tc_validity=15.0)
_OLSR: dict[str, Any] = {"interfaces": ["wlan0"], "olsr": FAST}
_KEY = base64.b64encode(bytes(range(32))).decode()


class Setting(NamedTuple):
    """Daemons of one kind. ``proactive``: they know all routes without being asked. ``sealed``: they have a
    key that mallory does not have, so they must refuse everything it sends.
    """

    module: str
    config: dict[str, Any]
    port: int
    query_ports: tuple[int, ...]
    proactive: bool
    sealed: bool = False


OLSR = Setting("node_agent.olsr.process", _OLSR, 698, (9090, 2006, 2005), True)
SEALED = OLSR._replace(config={**_OLSR, "manet": {"key": _KEY}}, sealed=True)
AODV = Setting("node_agent.aodv.process", {"interface": "wlan0"}, aodv.PORT, (9654,), False)


class RoutingAttack(NamedTuple):
    name: str
    role: str
    setting: Setting
    run: Callable[[Air, Voice, random.Random], None]


ATTACKS = (
    RoutingAttack("olsr_stolen_routes", NODE, OLSR, neighbour.stolen_routes),
    RoutingAttack("olsr_fuzzed", STRANGER, OLSR, neighbour.fuzzed_olsr),
    RoutingAttack("olsr_replayed", STRANGER, OLSR, neighbour.replayed_packets),
    RoutingAttack("olsr_stolen_identities", STRANGER, OLSR, neighbour.stolen_identities),
    RoutingAttack("olsr_query_servers", STRANGER, OLSR, neighbour.query_servers),
    RoutingAttack("olsr_invented_nodes", STRANGER, OLSR, neighbour.invented_nodes),
    RoutingAttack("sealed_stolen_routes", STRANGER, SEALED, neighbour.stolen_routes),
    RoutingAttack("sealed_replayed", STRANGER, SEALED, neighbour.replayed_packets),
    RoutingAttack("sealed_stolen_identities", STRANGER, SEALED, neighbour.stolen_identities),
    RoutingAttack("sealed_fuzzed", STRANGER, SEALED, neighbour.fuzzed_olsr),
    RoutingAttack("aodv_fuzzed", STRANGER, AODV, neighbour.fuzzed_aodv),
    RoutingAttack("aodv_query_servers", STRANGER, AODV, neighbour.query_servers),
)


def besiege_routing(seed: int, seconds: float, only: Collection[str], tell: Tell) -> Besieged:
    """Attacks daemons in namespaces; does nothing if this machine does not permit them."""
    found = Besieged()
    if reason := lacking():
        tell(f"no attacks on routing daemons: {reason}")
        return found
    end = time.monotonic() + seconds
    for setting in (OLSR, SEALED, AODV):
        chosen = [each for each in ATTACKS if each.setting == setting and (not only or each.name in only)]
        if chosen and time.monotonic() < end:
            with daemons(setting.module, setting.config) as air:
                _Siege(air, setting, found, tell).run(chosen, seed, end)
    return found


class _Siege:
    """The siege of the daemons of one setting."""

    def __init__(self, air: Air, setting: Setting, found: Besieged, tell: Tell) -> None:
        self._air, self._setting, self._found, self._tell = air, setting, found, tell
        air.query_ports = setting.query_ports
        self._before: dict[str, set[Route]] = {}

    def run(self, attacks: list[RoutingAttack], seed: int, end: float) -> None:
        air = self._air
        if self._setting.proactive and not air.until(air.complete, CONVERGED_S):
            raise RuntimeError("routing does not converge even before the siege")
        air.wait(3.0)
        self._before = {node: air.outside_routes(node) for node in HONEST}
        warm, descriptors = air.resident_mb(), air.descriptors()
        voice = Voice(air, self._setting.port)
        try:
            for attack in attacks:
                if time.monotonic() < end and not air.ended():
                    self._attack(attack, voice, random.Random(f"{seed} {attack.name}"))
        finally:
            voice.close()
        if not air.ended():
            self._measure(warm, descriptors)

    def _attack(self, attack: RoutingAttack, voice: Voice, rng: random.Random) -> None:
        air, already = self._air, voice.sent
        attack.run(air, voice, rng)
        self._found.attacks += 1
        self._found.messages += voice.sent - already
        air.wait(1.5)
        self._check(attack.name)
        if not air.ended():
            self._tell(
                f"{attack.name:<28}{voice.sent - already:>6} packets  {air.resident_mb():6.1f} MB  "
                f"{air.descriptors():>4} descriptors  routes {len(air.routes(HONEST[0]))}"
            )

    def _check(self, name: str) -> None:
        air, found = self._air, self._found
        for node in air.ended():
            found.agents_ended += 1
            found.trouble.append(f"{name}: the daemon of {node} ended: {air.log(node).read_text()[-300:]}")
        if air.ended():
            return
        for node in HONEST:
            changed = air.outside_routes(node) ^ self._before[node]
            believed = air.routes_to_others(node) if self._setting.sealed else set()
            if changed or believed:
                found.forged_accepted += len(changed) + len(believed)
                routes = sorted({*changed, *believed})[:4]
                found.trouble.append(f"{name}: routes of {node} that mallory has a part in: {routes}")
        if self._setting.proactive and not air.until(air.complete, CONVERGED_S):
            found.stalled += 1
            found.trouble.append(f"{name}: honest nodes do not know each other any more")

    def _measure(self, warm: float, descriptors: int) -> None:
        air, found = self._air, self._found
        grown, more = air.resident_mb() - warm, air.descriptors() - descriptors
        logged = max(air.log(node).stat().st_size for node in HONEST)
        found.rss_growth_mb = max(found.rss_growth_mb, round(grown, 1))
        found.descriptors_growth = max(found.descriptors_growth, more)
        if grown > MOST_MEGABYTES or more > MOST_DESCRIPTORS or logged > MOST_LOG_BYTES:
            found.outgrown += 1
            found.trouble.append(f"growth: {grown:.0f} MB, {more} descriptors, a log of {logged} bytes")
