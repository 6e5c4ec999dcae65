"""Tests one parser: draws hostile messages, feeds them to it, and records failures.

A failure is an exception that the parser's contract does not name, a call that takes too long, or memory that
grows with every message.
"""

import gc
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

CPU_S = 1.0
"""No message may cost more. Counted in CPU time: the machine may have other things to do."""
WALL_S = 20.0
"""Nor may a parser wait so long for anything."""
GROWTH_MB = 64.0
"""What a parser's process may grow by over a thousand messages and more, after the first quarter."""
MOST_SHOWN = 3
SHOWN = 600


class Target(Protocol):
    """``feed`` raises failures only: it catches the errors that the parser's contract names."""

    def draw(self, rng: random.Random) -> Any: ...

    def feed(self, message: Any) -> None: ...

    def close(self) -> None: ...


class Parser(NamedTuple):
    """``share``: its part of the messages, relative to other parsers. ``open``: opens a target in a scratch
    directory.

    ``renew``: after this many messages a new target takes over; otherwise the state left by the first
    messages would shield it from later ones.
    """

    name: str
    role: str
    share: float
    open: Callable[[Path], Target]
    renew: int = 0


class Failure(Struct, frozen=True):
    """``number``: that of the message, for ``--first``. ``kind``: crash, hang, forged, outside or growth."""

    parser: str
    kind: str
    seed: int
    number: int
    what: str
    message: str

    def __str__(self) -> str:
        again = f"--seed {self.seed} --only {self.parser} --first {self.number} --messages 1"
        return f"{self.parser}: {self.kind}: {self.what}\n    again: {again}\n    message: {self.message}"


class Fired(Struct):
    """The result of a parser's messages: failures by kind, and the first few of each kind of error."""

    parser: str
    messages: int = 0
    counts: dict[str, int] = {}
    grown_mb: float = 0.0
    seconds: float = 0.0
    failures: list[Failure] = []


class Hang(BaseException):
    """The parser took too long. Not an Exception, so that a parser that catches those does not catch this."""


class Forged(AssertionError):
    """The parser accepted a forgery."""


class Outside(AssertionError):
    """A file outside the run directory has changed."""


def kind_of(error: BaseException) -> str:
    match error:
        case Hang():
            return "hang"
        case Forged():
            return "forged"
        case Outside():
            return "outside"
    return "crash"


def fire(parser: Parser, seed: int, numbers: range, seconds: float) -> Fired:
    """Feeds the messages with these numbers, for at most this many seconds."""
    fired = Fired(parser.name)
    seen: dict[str, int] = {}
    began = time.monotonic()
    quarter, resident = max(1, len(numbers) // 4), 0.0
    with TemporaryDirectory(prefix="rove-siege-") as scratch, _alarms():
        target: Target | None = None
        for number in numbers:
            if time.monotonic() - began > seconds:
                break
            if target is not None and parser.renew and number % parser.renew == 0:
                _close(target)
                target = None
            if target is None:
                target = parser.open(_fresh(Path(scratch), number))
            rng = random.Random(f"{seed} {parser.name} {number}")
            message: Any = None
            try:
                message = target.draw(rng)
                with _time_limit():
                    target.feed(message)
            except (Exception, Hang) as error:
                kind = kind_of(error)
                fired.counts[kind] = fired.counts.get(kind, 0) + 1
                what = f"{type(error).__name__}: {_short(str(error), 200)}{_place_of(error)}"
                sort = f"{type(error).__name__}{_place_of(error)}"
                seen[sort] = seen.get(sort, 0) + 1
                if seen[sort] <= MOST_SHOWN and len(seen) <= 20:
                    shown = _short(repr(message), SHOWN)
                    fired.failures.append(Failure(parser.name, kind, seed, number, what, shown))
                _close(target)
                target = None
            fired.messages += 1
            if fired.messages == quarter:
                resident = resident_mb()
        if target is not None:
            _close(target)
    fired.seconds = time.monotonic() - began
    if fired.messages >= 2000:
        fired.grown_mb = max(0.0, resident_mb() - resident)
        if fired.grown_mb > GROWTH_MB:
            what = f"{fired.grown_mb:.0f} MB over {fired.messages - quarter} messages"
            fired.failures.append(Failure(parser.name, "growth", seed, numbers.start, what, ""))
    return fired


def resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _fresh(scratch: Path, number: int) -> Path:
    directory = scratch / f"t{number}"
    directory.mkdir(parents=True)
    return directory


def _close(target: Target) -> None:
    try:
        with _time_limit():
            target.close()
    except (Exception, Hang):  # a broken target may also fail when it is closed
        pass


@contextmanager
def _alarms() -> Iterator[None]:
    """Sets the alarms. Only in the main thread of a process that uses these signals for nothing else."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang("more than a second of CPU time" if number == signal.SIGPROF else "it waits without end")

    before = {number: signal.signal(number, ring) for number in (signal.SIGPROF, signal.SIGALRM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _time_limit() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    signal.setitimer(signal.ITIMER_REAL, WALL_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _place_of(error: BaseException) -> str:
    """Returns where in our own code the error was raised."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if f"{os.sep}benchmarks{os.sep}" not in name and any(
            f"{os.sep}{room}{os.sep}" in name for room in ("node_agent", "orchestrator")
        ):
            place = f" at {'/'.join(Path(name).parts[-2:])}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
