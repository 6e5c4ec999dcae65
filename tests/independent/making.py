"""Makes one random run: a world with one to three applications, written to disk."""

from pathlib import Path

from tests.independent import damage, surroundings
from tests.independent.dataflows import Dataflow
from tests.independent.flow_traffic import Flows
from tests.independent.world import World

NAMES = ("alpha", "beta", "load")


def make(seed: int, root: Path) -> tuple[World, Path]:
    """Writes the run below ``root``; returns its world and directory."""
    world = World(seed)
    kinds: tuple[type[Dataflow | Flows], ...] = world.random.choice(
        ((Dataflow,), (Dataflow,), (Flows,), (Dataflow, Flows), (Dataflow, Dataflow, Flows))
    )
    names = ("query" if kinds[0] is Dataflow else "flows",) if len(kinds) == 1 else NAMES
    for name, kind in zip(names, kinds, strict=False):
        kind(world, name).fill()
    surroundings.fill(world)
    damage.lie(world)
    directory = world.write(root, damage.damaged(world))
    surroundings.write(world, directory)
    return world, directory
