"""Whether broken requests can hurt the page's server: 10,000 of them against a live `rove serve` on loopback.

Methods, paths that lead elsewhere, headers, sizes, chunks, half-open connections, pipelines, wrong tokens.
All of `tracebacks`, `hangs`, `files_outside`, `server_errors` and `without_policy` must be 0.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path

from benchmarks.serving.client import Client
from benchmarks.serving.requests import Case, cases
from benchmarks.serving.world import CANARY, PASSWORDS, World, answers, served, short_run
from benchmarks.shared.harness import Figures, main

REQUESTS = 10_000
SECONDS_AT_MOST = 480.0
SEED = 14


def fuzz(world: World, requests: int, seconds: float) -> dict[str, float | int | str]:
    client = Client(world.port, (CANARY, PASSWORDS))
    began = time.monotonic()
    asyncio.run(client.send_all(_for(seconds, islice(cases(world.target, SEED), requests))))
    found = client.outcomes
    alive = asyncio.run(answers(world))
    log = world.log.read_text(errors="replace")
    return {
        "requests": found.requests,
        "tracebacks": log.count("Traceback"),
        "hangs": found.hangs,
        "files_outside": found.files_outside,
        "server_errors": found.server_errors,
        "without_policy": found.without_policy,
        "answers_afterwards": int(alive),
        "answers_ok": found.statuses[200],
        "answers_refused": sum(count for status, count in found.statuses.items() if 400 <= status < 500),
        "seconds": time.monotonic() - began,
        "first_finding": found.examples[0] if found.examples else "",
        "log": log[-2000:],
    }


def measure() -> Figures:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with served(place, short_run(place)) as world:
            return fuzz(world, REQUESTS, SECONDS_AT_MOST)


def _for(seconds: float, found: Iterator[Case]) -> Iterator[Case]:
    end = time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < end, found)


if __name__ == "__main__":
    main("Page server against broken requests", measure)
