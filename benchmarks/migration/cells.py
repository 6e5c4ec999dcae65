"""Runs cells of the figures, and keeps what they found so that an interrupted measurement goes on."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.migration.moving import Greedy, Planned, Planning
from benchmarks.migration.scenes import Accident, Generic, Ground, Video
from benchmarks.migration.simulation import Measured, Mover, Simulation
from benchmarks.migration.topologies import Tree, flat, quad
from benchmarks.migration.traffic import Traffic, drives

Query = Generic | Accident | Video
Way = Planning | int | None
"""How operators move: by plans, greedily each so many seconds, or not at all."""
GREEDY_S = 5
LEARNING_S = 300
"""Traffic before the measurement."""


@dataclass(frozen=True)
class Size:
    vehicles: int
    seconds: int
    repetitions: int


class Cells:
    """``folder``: where results and drives are kept, None: nowhere."""

    def __init__(self, size: Size, folder: Path | None) -> None:
        self.size, self._folder = size, folder
        self._trees = {"quad": quad(), "flat": flat()}
        self._known: dict[str, Measured] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            if (folder / "cells.jsonl").exists():
                for line in (folder / "cells.jsonl").read_text().splitlines():
                    row = json.loads(line)
                    self._known[row["cell"]] = Measured(**row["found"])
        self._ground: Ground | None = None

    def ground(self) -> Ground:
        if self._ground is None:
            self._ground = Ground(Traffic(self._drives()), LEARNING_S, self.size.seconds)
        return self._ground

    def _drives(self) -> dict[str, list[tuple[float, float]]]:
        seconds = LEARNING_S + self.size.seconds
        file = self._folder and self._folder / f"drives-{self.size.vehicles}-{seconds}.json"
        if file and file.exists():
            return {name: [(x, y) for x, y in way] for name, way in json.loads(file.read_text()).items()}
        found = drives([f"car{n}" for n in range(1, self.size.vehicles + 1)], 1, seconds)
        if file:
            file.write_text(json.dumps(found))
        return found

    def tree(self, name: str) -> Tree:
        return self._trees[name]

    def run(self, query: Query, tree: str, way: Way) -> Measured:
        """Sums over repetitions: other vehicles, and other hosts at first."""
        whole = Measured()
        for seed in range(1, self.size.repetitions + 1):
            whole.add(self._one(query, tree, way, seed))
        return whole

    def _one(self, query: Query, tree: str, way: Way, seed: int) -> Measured:
        key = f"{self.size.vehicles} {self.size.seconds} {tree} {seed} {way!r} {query!r}"
        if key not in self._known:
            simulation = Simulation(query.scene(self.ground(), self.tree(tree), seed))
            self._known[key] = simulation.play(_mover(simulation, way))
            if self._folder is not None:
                row = {"cell": key, "found": asdict(self._known[key])}
                with (self._folder / "cells.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
        return self._known[key]


def _mover(simulation: Simulation, way: Way) -> Mover:
    if way is None:
        return Mover(simulation)
    return Greedy(simulation, way) if isinstance(way, int) else Planned(simulation, way)
