"""Runs one attack after another on a live network, and checks after each that the network still works."""

import asyncio
import inspect
import random
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from msgspec import Struct

from benchmarks.attacks.canary import Canary
from benchmarks.attacks.live import insider, stranger
from benchmarks.attacks.live.network import AGENTS, MALLORY, LiveNetwork, Usage
from benchmarks.attacks.live.recording import Recorder
from benchmarks.attacks.parser import Forged, Outside
from orchestrator.lifecycle.examination import examine
from orchestrator.runs.run_directory import RunDirectory

ATTACK_S = 60.0
SETTLE_S = 3.0
MOST_LOG_BYTES = 64 * 1024
"""Of what an agent may write to its log over the whole siege."""
MOST_MEGABYTES, MOST_DESCRIPTORS = 32.0, 16
"""What an agent may grow by over the whole siege, once it is warm."""

Run = Callable[[LiveNetwork, random.Random], Any]
"""Says how many messages it sent; a coroutine does so when it has ended."""
Tell = Callable[[str], None]


class Attack(NamedTuple):
    name: str
    role: str
    run: Run


class Besieged(Struct):
    """The result of the attacks. ``trouble``: a line for each problem."""

    attacks: int = 0
    messages: int = 0
    agents_ended: int = 0
    stalled: int = 0
    lost: int = 0
    outgrown: int = 0
    forged_accepted: int = 0
    files_outside: int = 0
    rss_growth_mb: float = 0.0
    descriptors_growth: int = 0
    trouble: list[str] = []


STRANGER, NODE = "stranger", "malicious node"
ATTACKS: tuple[Attack, ...] = (
    Attack("deep_greetings", STRANGER, stranger.deep_greetings),
    Attack("fuzzed_greetings", STRANGER, stranger.fuzzed_greetings),
    Attack("flood_of_connections", STRANGER, stranger.flood_of_connections),
    Attack("connect_and_reset", STRANGER, stranger.connect_and_reset),
    Attack("slow_greetings", STRANGER, stranger.slow_greetings),
    Attack("half_frames", STRANGER, stranger.half_frames),
    Attack("much_without_a_key", STRANGER, stranger.much_without_a_key),
    Attack("fuzzed_datagrams", STRANGER, stranger.fuzzed_datagrams),
    Attack("spoofed_probes", STRANGER, stranger.spoofed_probes),
    Attack("spoofed_replies", STRANGER, stranger.spoofed_replies),
    Attack("impersonation", NODE, insider.impersonation),
    Attack("forged_tuples", NODE, insider.forged_tuples),
    Attack("fuzzed_frames", NODE, insider.fuzzed_frames),
    Attack("no_credit", NODE, insider.no_credit),
    Attack("too_much_to_pass_on", NODE, insider.too_much_to_pass_on),
    Attack("never_reads", NODE, insider.never_reads),
    Attack("notices_about_others", NODE, insider.notices_about_others),
    Attack("lying_probes", NODE, insider.lying_probes),
    Attack("swallows_all", NODE, insider.as_receiver(insider.swallow)),
    Attack("acknowledges_all", NODE, insider.as_receiver(insider.acknowledge_all)),
    Attack("answers_garbage", NODE, insider.as_receiver(insider.garbage)),
)
REPLAYS: dict[str, Callable[[Recorder], Run]] = {
    "replay_after_restart": stranger.replay_after_restart,
    "replay": stranger.replay,
    "replay_to_others": stranger.replay_to_others,
}
"""Of what was recorded of this very run, which needs root."""


def besiege(seed: int, seconds: float, only: Collection[str], tell: Tell) -> Besieged:
    """Attacks for about this many seconds at most; attacks without time are not counted. ``only``: just some
    of them.
    """
    known = {*(attack.name for attack in ATTACKS), *REPLAYS}
    if only and not known.intersection(only):
        return Besieged()
    with TemporaryDirectory(prefix="rove-siege-") as directory:
        return asyncio.run(_besiege(Path(directory), seed, seconds, only, tell))


async def _besiege(directory: Path, seed: int, seconds: float, only: Collection[str], tell: Tell) -> Besieged:
    canary = Canary(directory / "around")
    net = LiveNetwork(canary.inside)
    found = Besieged()
    recorder = _recorder(net)
    attacks = list(ATTACKS)
    if recorder is not None:
        replays = [Attack(name, STRANGER, make(recorder)) for name, make in REPLAYS.items()]
        # A restart comes first: what happens later is then in one record.
        attacks = [replays[0], *attacks, *replays[1:]]
    end = time.monotonic() + seconds
    try:
        await net.start()
        if not await net.flows():
            raise RuntimeError(f"the query does not flow even before the siege: {net.delivered()}")
        await asyncio.sleep(SETTLE_S)
        warm = net.usage()
        for attack in attacks:
            if (only and attack.name not in only) or time.monotonic() > end:
                continue
            starts = net.starts
            if not await _attack(attack, net, seed, found, tell):
                _measure(net, warm, found)
                await net.restart()
                await net.flows()
            if net.starts != starts:
                warm = net.usage()
        await asyncio.sleep(SETTLE_S)
        _measure(net, warm, found)
    finally:
        await net.stop()
        if recorder is not None:
            recorder.close()
    _check_truth(net, found)
    if not only:
        _check_record(net, found)
    try:
        canary.check()
    except Outside as error:
        found.files_outside += 1
        found.trouble.append(str(error))
    return found


def _recorder(net: LiveNetwork) -> Recorder | None:
    with suppress(PermissionError):
        return Recorder(net.hosts.values())
    return None


async def _attack(attack: Attack, net: LiveNetwork, seed: int, found: Besieged, tell: Tell) -> bool:
    """Runs one attack; says whether the network works after it."""
    rng = random.Random(f"{seed} {attack.name}")
    before = net.delivered()
    began = time.monotonic()
    try:
        async with asyncio.timeout(ATTACK_S):
            sent = attack.run(net, rng) if inspect.iscoroutinefunction(attack.run) else None
            found.messages += await (sent if sent is not None else asyncio.to_thread(attack.run, net, rng))
    except Forged as error:
        found.forged_accepted += 1
        found.trouble.append(f"{attack.name}: {error}")
    except (TimeoutError, OSError) as error:
        found.trouble.append(f"{attack.name}: the attack itself failed: {error!r}")
    found.attacks += 1
    took = time.monotonic() - began
    flows = await net.flows()
    ended = net.ended()
    if not flows and not ended:
        found.stalled += 1
        found.trouble.append(f"{attack.name}: the query does not flow any more: {net.delivered()}")
    for node in ended:
        found.agents_ended += 1
        found.trouble.append(f"{attack.name}: the agent of {node} ended: {net.last_words(node)}")
    usage = net.usage()
    tell(
        f"{attack.name:<28}{took:6.1f} s  delivered {net.delivered().count - before.count:>5}  "
        f"{usage.resident_mb:6.1f} MB  {usage.descriptors:>4} descriptors  log {usage.log_bytes} B"
    )
    return flows and not ended


def _measure(net: LiveNetwork, warm: Usage, found: Besieged) -> None:
    now = net.usage()
    grown, more = now.resident_mb - warm.resident_mb, now.descriptors - warm.descriptors
    found.rss_growth_mb = max(found.rss_growth_mb, round(grown, 1))
    found.descriptors_growth = max(found.descriptors_growth, more)
    if grown > MOST_MEGABYTES or more > MOST_DESCRIPTORS or now.log_bytes > MOST_LOG_BYTES:
        found.outgrown += 1
        found.trouble.append(f"growth: from {warm} to {now}")


def _check_truth(net: LiveNetwork, found: Besieged) -> None:
    delivered = net.delivered()
    if delivered.forged:
        found.forged_accepted += delivered.forged
        found.trouble.append(f"the sink was given {delivered.forged} tuples that the source did not make")
    if delivered.missing:
        found.lost += delivered.missing
        found.trouble.append(f"{delivered.missing} of {delivered.highest} tuples did not reach the sink")


def _check_record(net: LiveNetwork, found: Besieged) -> None:
    """Checks that honest nodes' records are complete, and say who was refused."""
    examined = examine(RunDirectory(net.directory), AGENTS, net.apps())
    for node, found_there in examined.completeness.items():
        if not found_there.complete:
            found.lost += 1
            found.trouble.append(f"the record of {node} is not whole: {found_there}")
    sources = {refused.source for refused in examined.refused}
    strangers = sources - {MALLORY, *AGENTS}
    if MALLORY not in sources or not strangers:
        found.forged_accepted += 1
        found.trouble.append(f"the record does not say who was refused: {sorted(sources)}")
