"""Placement ``random``: one operator per node, drawn by the seed, as in the paper."""

from collections.abc import Sequence

from orchestrator.apps.dataflow.planning.arrangement import Choose, Placed, Slot
from orchestrator.apps.dataflow.planning.placement_policy import PlacementPolicy, one_by_one
from orchestrator.apps.dataflow.spec.placement import RandomPlacement


def at_random(order: Sequence[str]) -> Choose:
    """Chooses as in the paper: one operator per node, drawn by the seed of ``order``."""

    def choose(slot: Slot, placed: Placed) -> str | None:
        taken = frozenset(placed.values())
        return next((node for node in order if node not in taken), None)

    return choose


POLICY = PlacementPolicy(
    one_by_one(lambda site: at_random(site.order)),
    "nodes drawn at random, one replica on each",
    RandomPlacement,
    on_any_nodes=True,
)
