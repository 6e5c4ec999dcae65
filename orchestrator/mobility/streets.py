"""Random drives through a network of SUMO's: which streets follow which, and a way for each vehicle."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from orchestrator.mobility.trace_file import TraceError

Streets = dict[str, tuple[str, ...]]
"""By the name of a street (an edge): the streets into which one may turn from it."""


def read_streets(network: Path) -> Streets:
    """Returns the streets of a ``.net.xml``, without the insides of junctions."""
    following: dict[str, set[str]] = {}

    def element(name: str, attributes: dict[str, str]) -> None:
        if name == "edge" and attributes.get("function") != "internal":
            following.setdefault(attributes["id"], set())
        elif name == "connection" and attributes["from"] in following:
            following[attributes["from"]].add(attributes["to"])

    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    try:
        parser.Parse(network.read_bytes(), True)
    except (expat.ExpatError, KeyError) as error:
        raise TraceError(str(network), None, f"is not a network of SUMO's: {error}") from error
    return {street: tuple(sorted(to)) for street, to in sorted(following.items())}


def drive(streets: Streets, count: int, rng: random.Random) -> list[str]:
    """Returns a random way over ``count`` streets, fewer if it meets a dead end."""
    way = [rng.choice(list(streets))]
    while len(way) < count and (following := streets[way[-1]]):
        way.append(rng.choice(following))
    return way


def routes_file(ways: Mapping[str, Sequence[str]]) -> str:
    """Returns a ``.rou.xml``: all vehicles start at 0, anywhere on their first street."""
    start = 'depart="0" departLane="random" departPos="random_free"'
    vehicles = [
        f"<vehicle id={quoteattr(name)} {start}><route edges={quoteattr(' '.join(way))}/></vehicle>"
        for name, way in ways.items()
    ]
    return "\n".join(["<routes>", *vehicles, "</routes>", ""])
