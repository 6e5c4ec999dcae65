"""Tests all parsers in several processes with time limits; a process that does not end is killed."""

import gc
import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import msgspec

from benchmarks.attacks.parser import Failure, Fired, Parser, fire

GRACE_S = 60.0
LONGEST_TURN = 0.3
"""Share of the whole time: no parser may take more in one process."""


ROUNDS = 2
SMALLEST_PIECE = 500


class Turn(NamedTuple):
    parser: Parser
    numbers: range


def turns(parsers: Sequence[Parser], messages: int, first: int, jobs: int) -> list[Turn]:
    """Divides the messages of each parser, by its share, into pieces. The first pieces of all parsers come
    first, so that each gets some even if there is not time for all.
    """
    whole = sum(parser.share for parser in parsers)
    rounds: list[list[Turn]] = []
    for parser in parsers:
        count = max(1, round(messages * parser.share / whole))
        size = max(-(-count // (ROUNDS * jobs)), SMALLEST_PIECE)
        for number, start in enumerate(range(first, first + count, size)):
            if number == len(rounds):
                rounds.append([])
            rounds[number].append(Turn(parser, range(start, min(start + size, first + count))))
    return [turn for each in rounds for turn in each]


def fire_at_all(
    parsers: Sequence[Parser],
    seed: int,
    messages: int,
    seconds: float,
    first: int = 0,
    jobs: int | None = None,
) -> list[Fired]:
    """Returns the results by parser."""
    jobs = jobs or os.cpu_count() or 1
    end = time.monotonic() + seconds
    waiting = turns(parsers, messages, first, jobs)
    running: dict[Connection, tuple[BaseProcess, Turn, float]] = {}
    found: list[Fired] = []
    # Forked: the sound run and all imports are shared.
    context = multiprocessing.get_context("fork")
    gc.freeze()  # otherwise the garbage collector of every process would touch, and so copy, all of it
    while waiting or running:
        while waiting and len(running) < jobs:
            turn = waiting.pop(0)
            limit = min(end - time.monotonic(), LONGEST_TURN * seconds)
            if limit <= 0:
                continue
            reader, writer = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(target=_take_turn, args=(turn, seed, limit, writer))
            process.start()
            writer.close()
            running[reader] = process, turn, time.monotonic() + limit + GRACE_S
        for reader in _readable(running):
            process, turn, _ = running.pop(reader)
            found.append(_result(reader, process, turn, seed))
    gc.unfreeze()
    return _by_parser(found)


def _readable(running: "dict[Connection, tuple[BaseProcess, Turn, float]]") -> list[Connection]:
    """Returns workers that have reported, have ended or are out of time."""
    ready = wait(list(running), timeout=1.0)
    late = [reader for reader, (_, _, until) in running.items() if time.monotonic() > until]
    return [each for each in running if each in ready or each in late]


def _take_turn(turn: Turn, seed: int, limit: float, writer: Connection) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)  # image libraries print a line for each picture there
    # Power cuts are not tested here, and syncing would take most of the time.
    setattr(os, "fsync", lambda fd: None)  # noqa: B010
    writer.send_bytes(msgspec.json.encode(fire(turn.parser, seed, turn.numbers, limit)))
    writer.close()


def _result(reader: Connection, process: BaseProcess, turn: Turn, seed: int) -> Fired:
    try:
        if not reader.poll():
            process.kill()
            what = "its process did not end"
        else:
            result = msgspec.json.decode(reader.recv_bytes(), type=Fired)
            process.join()
            return result
    except EOFError:
        process.join()
        what = f"its process ended with {process.exitcode}"
    process.join()
    failure = Failure(turn.parser.name, "hang", seed, turn.numbers.start, what, "")
    return Fired(turn.parser.name, counts={"hang": 1}, failures=[failure])


def _by_parser(found: Sequence[Fired]) -> list[Fired]:
    merged: dict[str, Fired] = {}
    for each in found:
        whole = merged.setdefault(each.parser, Fired(each.parser))
        whole.messages += each.messages
        whole.seconds += each.seconds
        whole.grown_mb = max(whole.grown_mb, each.grown_mb)
        whole.failures += each.failures
        for kind, count in each.counts.items():
            whole.counts[kind] = whole.counts.get(kind, 0) + count
    return list(merged.values())
