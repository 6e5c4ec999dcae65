"""Runs many drills: some side by side, those that need real nodes one after another in each laboratory."""

import queue
import random
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.drilling.drill import DEADLINE_S, Drill, Findings
from benchmarks.drilling.kinds import KINDS

if TYPE_CHECKING:
    from tests.ssh.lab import Lab

LAB_NODES = ("n01", "n02", "n03")


class Order(NamedTuple):
    """One drill to be played; the same order is the same drill."""

    kind: str
    number: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number}"

    @property
    def again(self) -> str:
        chosen = f"--only {self.kind} --first {self.number} --drills 1 --seed {self.seed}"
        return f"python -m benchmarks.drills {chosen}"


class Played(NamedTuple):
    order: Order
    found: Findings
    notes: tuple[str, ...]
    seconds: float


def orders(counts: Mapping[str, int], seed: int, first: int = 0) -> list[Order]:
    return [Order(kind, first + number, seed) for kind, count in counts.items() for number in range(count)]


def scaled(drills: int | None, kinds: Sequence[str]) -> dict[str, int]:
    """Returns how many of each kind to run: by default as the table says, otherwise in these proportions."""
    by_default = {kind: KINDS[kind].drills for kind in kinds}
    total = sum(by_default.values())
    if drills is None or total == 0:
        return by_default
    exact = {kind: count * drills / total for kind, count in by_default.items()}
    counts = {kind: int(share) for kind, share in exact.items()}
    by_rest = sorted(kinds, key=lambda kind: counts[kind] - exact[kind])
    for kind in by_rest[: drills - sum(counts.values())]:
        counts[kind] += 1
    return counts


def play(order: Order, root: Path, lab: "Lab | None" = None, deadline_s: float = DEADLINE_S) -> Played:
    """Runs a drill; keeps its folder if it found a problem."""
    began = time.monotonic()
    folder = root / order.name
    drill = Drill(
        order.name, order.number, random.Random(f"{order.seed} {order.name}"), folder, lab, deadline_s
    )
    try:
        KINDS[order.kind].play(drill)
    except Exception:
        drill.found.wrong_verdicts.append(f"broke off: {traceback.format_exc().strip()}")
    finally:
        drill.close()
    if drill.found.clean:
        shutil.rmtree(folder)
    return Played(order, drill.found, tuple(drill.notes), time.monotonic() - began)


def campaign(
    ordered: Sequence[Order],
    root: Path,
    at_once: int,
    labs: int,
    deadline_s: float,
    tell: Callable[[Played], None],
) -> list[Played]:
    """Runs the drills. ``at_once``: how many side by side on this machine; ``labs``: how many laboratories in
    addition.
    """
    here: queue.SimpleQueue[Order] = queue.SimpleQueue()
    there: queue.SimpleQueue[Order] = queue.SimpleQueue()
    for order in ordered:
        (there if KINDS[order.kind].real_nodes else here).put(order)
    played: list[Played] = []
    lock = threading.Lock()

    def done(one: Played) -> None:
        with lock:
            played.append(one)
            tell(one)

    def work_here() -> None:
        for order in _taken(here):
            done(play(order, root, None, deadline_s))

    def work_there(number: int) -> None:
        # Imported here: only needed with real nodes.
        from tests.ssh.lab import laboratory

        if there.empty():
            return
        folder = root / f"lab{number}"
        folder.mkdir()
        with laboratory(folder, LAB_NODES) as lab:
            for order in _taken(there):
                done(play(order, root, lab, deadline_s))
                lab.tidy()

    with ThreadPoolExecutor(at_once + labs) as pool:
        workers = [pool.submit(work_here) for _ in range(at_once)]
        workers += [pool.submit(work_there, number) for number in range(labs)]
        try:
            for worker in workers:
                worker.result()  # raises the error that broke it
        except BaseException:  # drills that have begun end in order
            for waiting in (here, there):
                list(_taken(waiting))
            raise
    return played


def _taken(orders: "queue.SimpleQueue[Order]") -> Iterator[Order]:
    while True:
        try:
            yield orders.get_nowait()
        except queue.Empty:
            return
