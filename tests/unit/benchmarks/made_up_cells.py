"""Finished cells of the paper's figures with made-up results, for tests of statistics and pages."""

import random
from pathlib import Path

from benchmarks.paper.cells import Kept, KeptCell, key_of
from benchmarks.paper.figures import PaperFigure, planned
from orchestrator.apps.dataflow.paper import REPLICAS


def made_up(
    path: Path,
    figure: PaperFigure,
    seeds: int,
    variant: str = "core",
    backend: str = "sim",
    noise: float = 0.0,
) -> Kept:
    """Keeps cells in which goodput grows by half with each replica, from 10 ± 2, and latency falls."""
    kept = Kept(path)
    for cell in planned(figure, variant, backend):
        for seed in range(1, seeds + 1):
            k = int(cell.factors[REPLICAS])
            base = random.Random(f"{figure.label(cell.factors)}/{seed}").gauss(10, 2)
            luck = random.Random(f"{backend}/{k}/{seed}").gauss(1, noise)
            kept.add(kept_cell(key_of(cell.experiment), seed, base * (1 + 0.5 * (k - 1)) * luck, backend))
    return kept


def kept_cell(key: str, seed: int, goodput: float, backend: str = "sim", verdict: str = "valid") -> KeptCell:
    return KeptCell(
        key=key,
        backend=backend,
        seed=seed,
        factors={},
        verdict=verdict,
        reasons=() if verdict == "valid" else ("the radio was late",),
        figures={
            "goodput_fps": goodput,
            "offered_fps": goodput * 1.1,
            "throughput_fps": goodput * 1.05,
            "latency_p95_s": 10 / goodput,
        },
        seconds=20.0,
        virtual_s=140.0,
        nodes=25,
        commit="c0ffee" * 6 + "c0ff",
        dirty=False,
    )
