"""Attacks Rove as a stranger, a malicious node and a liar, and counts what they achieve. It should be
nothing.

First every parser of foreign bytes gets hostile messages, made from sound ones, in processes of this machine.
Then whole agents and routing daemons, as processes on the loopback device and in namespaces (root), are
attacked while a query flows; after each attack it must still flow. Last a liar hands in its records.

Every message follows from ``--seed``, so that a failure can be repeated: it is printed with its command.
``crashes`` are errors that a parser's contract does not name, ``hangs`` calls of more than a second and
queries that stand still, ``forged_accepted`` lies that were believed, ``files_outside`` files changed that no
node may change, ``outgrown`` processes that grew beyond bounds. Traffic stays on the loopback device and in
namespaces of the siege itself.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from benchmarks.attacks import liar
from benchmarks.attacks.live import routing, siege
from benchmarks.attacks.parser import Fired
from benchmarks.attacks.sound import remove_sound_run, sound_run
from benchmarks.attacks.table import PARSERS
from benchmarks.attacks.workers import fire_at_all
from benchmarks.shared.harness import Figures, tell

MESSAGES = 1_000_000
SECONDS_AT_MOST = 1200.0
LIVE_S, ROUTING_S = 240.0, 240.0
MUST_BE_ZERO = ("agents_ended", "files_outside", "forged_accepted", "hangs", "crashes", "lost", "outgrown")


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Wanted(argparse.Namespace):
    json: bool
    seed: int
    only: str
    first: int
    messages: int
    seconds: float
    live: bool


class Outcome(Struct):
    fired: list[Fired]
    live: list[siege.Besieged]

    def trouble(self) -> list[str]:
        return [
            *(str(failure) for each in self.fired for failure in each.failures),
            *(line for each in self.live for line in each.trouble),
        ]

    def figures(self, seed: int, seconds: float) -> Figures:
        def counted(kind: str) -> int:
            return sum(each.counts.get(kind, 0) for each in self.fired)

        def summed(name: str) -> int:
            return sum(getattr(each, name) for each in self.live)

        return {
            "benchmark": "siege",
            "attacks": len(self.fired) + summed("attacks"),
            "messages": sum(each.messages for each in self.fired) + summed("messages"),
            "agents_ended": summed("agents_ended"),
            "files_outside": counted("outside") + summed("files_outside"),
            "forged_accepted": counted("forged") + summed("forged_accepted"),
            "hangs": counted("hang") + summed("stalled"),
            "crashes": counted("crash"),
            "lost": summed("lost"),
            "outgrown": sum(failure.kind == "growth" for each in self.fired for failure in each.failures)
            + summed("outgrown"),
            "rss_growth_mb": max((each.rss_growth_mb for each in self.live), default=0.0),
            "descriptors_growth": max((each.descriptors_growth for each in self.live), default=0),
            "seed": seed,
            "seconds": seconds,
        }


def names() -> tuple[str, ...]:
    """Returns everything that ``--only`` can choose."""
    lists: tuple[Sequence[Named], ...] = (PARSERS, siege.ATTACKS, routing.ATTACKS, liar.ATTACKS)
    return (*(each.name for entries in lists for each in entries), *siege.REPLAYS)


def run(wanted: Wanted) -> Outcome:
    only = (wanted.only,) if wanted.only else ()
    chosen = [parser for parser in PARSERS if not only or parser.name in only]
    outcome = Outcome([], [])
    sound_run()
    try:
        if chosen:
            outcome.fired = fire_at_all(chosen, wanted.seed, wanted.messages, wanted.seconds, wanted.first)
            for each in outcome.fired:
                failures = ", ".join(f"{count} × {kind}" for kind, count in each.counts.items())
                say(f"{each.parser:<28}{each.messages:>8} messages  {each.seconds:7.1f} s  {failures}")
        if wanted.live and not (only and chosen):
            outcome.live = [
                siege.besiege(wanted.seed, LIVE_S, only, say),
                routing.besiege_routing(wanted.seed, ROUTING_S, only, say),
                liar.lie(wanted.seed, only, say),
            ]
    finally:
        remove_sound_run()
    return outcome


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parsed(arguments: Sequence[str] | None = None) -> Wanted:
    parser = argparse.ArgumentParser(description="siege: a stranger, a malicious node and a liar")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", choices=("", *names()), metavar="NAME", help="one attack alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first message for each parser")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="for all parsers together")
    parser.add_argument("--seconds", type=float, default=SECONDS_AT_MOST, help="at most, for the parsers")
    parser.add_argument("--no-live", dest="live", action="store_false", help="parsers alone")
    return parser.parse_args(arguments, Wanted())


def main() -> int:
    wanted = parsed()
    began = time.monotonic()
    if os.geteuid() != 0:
        say("without root: no attacks on routing daemons in namespaces, and no replays of recorded traffic")
    outcome = run(wanted)
    for line in outcome.trouble():
        say(line)
    figures = outcome.figures(wanted.seed, time.monotonic() - began)
    tell("siege: a stranger, a malicious node and a liar", figures, wanted.json)
    return 1 if any(figures[name] for name in MUST_BE_ZERO) else 0


if __name__ == "__main__":
    sys.exit(main())
