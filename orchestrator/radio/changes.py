"""What faults change of the air: radios that are off, links that are cut or weakened, nodes elsewhere."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from orchestrator.model.trace import Position

Groups = tuple[tuple[str, ...], ...]


class Weakened(Struct, frozen=True):
    """A link that loses ``by_db`` more than it would, both ways; None: nothing passes."""

    one: str
    other: str
    by_db: float | None = None


class AirChanges(Struct, frozen=True):
    """All that holds at one moment. ``splits``: for each, groups of nodes between which nothing passes; nodes
    in none of its groups are a further one. ``places``: nodes that are here, wherever they would be.
    """

    silent: tuple[str, ...] = ()
    splits: tuple[Groups, ...] = ()
    links: tuple[Weakened, ...] = ()
    places: dict[str, Position] = {}

    def placed(self, positions: Mapping[str, Position]) -> Mapping[str, Position]:
        """Returns the positions with those of the nodes that are elsewhere."""
        return (
            positions
            if not self.places
            else {node: self.places.get(node, positions[node]) for node in positions}
        )

    def affects_links(self) -> bool:
        return bool(self.splits or self.links)

    def loss_db(self) -> Callable[[str, str], float]:
        """Returns a function that says how much more is lost between two nodes; infinite: nothing passes."""
        groups = [
            {node: number for number, group in enumerate(split) for node in group} for split in self.splits
        ]
        links: dict[frozenset[str], float] = {}
        for each in self.links:
            pair = frozenset((each.one, each.other))
            links[pair] = links.get(pair, 0.0) + (float("inf") if each.by_db is None else each.by_db)

        def lost(one: str, other: str) -> float:
            if any(group.get(one) != group.get(other) for group in groups):
                return float("inf")
            return links.get(frozenset((one, other)), 0.0)

        return lost


UNCHANGED = AirChanges()


def joined(changes: Iterable[AirChanges]) -> AirChanges:
    """Returns what holds while all of them do; where two say where a node is, the last one does."""
    every = tuple(changes)
    return AirChanges(
        silent=tuple(dict.fromkeys(node for each in every for node in each.silent)),
        splits=tuple(split for each in every for split in each.splits),
        links=tuple(link for each in every for link in each.links),
        places={node: place for each in every for node, place in each.places.items()},
    )
