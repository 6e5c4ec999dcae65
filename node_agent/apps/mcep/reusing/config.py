"""What an agent is given of reuse: how selections are compared, and which managers decide where."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from node_agent.apps.mcep.model import McepError, Quality
from node_agent.apps.mcep.reuse.batches import Batching, Counted, Timed
from node_agent.apps.mcep.reuse.cells import CellSize
from node_agent.apps.mcep.reuse.deployed import Managed, Reuse, split_key
from node_agent.apps.mcep.reuse.judging import Rules, Times
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.reuse.neighbours import Reach
from node_agent.apps.mcep.reuse.similarity import ESTIMATES

Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=86400)]
Metres = Annotated[float, Meta(ge=0, le=1e7)]
Name = Annotated[str, Meta(min_length=1, max_length=500)]
Algorithm = Literal["msh", "mnh", "none"]
Similarity = Literal["exact", "spatial", "neighbour", "grid", "recent"]
HEURISTIC_OF: dict[Algorithm, str] = {"msh": "similarity", "mnh": "neighbour", "none": "none"}
MOST_BATCH = 10_000


class ManagerConfig(Struct, frozen=True):
    """``operators``: by query and name, such as ``near/averaging``."""

    name: Name
    broker: Name
    operators: tuple[Name, ...]


class ReuseConfig(Struct, frozen=True):
    """``least``: precision and recall must be above this; ``by_query``: for queries that ask for something
    else. ``selections``, ``seconds``: of a batch; with seconds its selections are those of a span of time.
    ``neighbours``, ``own_m``, ``reference_m``: who may process for an operator, see ``Reach``; None: no
    limit. ``cell``: metres and seconds of the grid. ``recent_s``: how long an operator's events count as
    recent."""

    managers: tuple[ManagerConfig, ...]
    algorithm: Algorithm = "mnh"
    least: tuple[Share, Share] = (0.5, 0.5)
    by_query: dict[Name, tuple[Share, Share]] = {}
    similarity: Similarity = "exact"
    selections: Annotated[int, Meta(ge=1, le=MOST_BATCH)] = 1
    seconds: Seconds = 0.0
    period: Annotated[float, Meta(ge=0.01, le=3600)] = 1.0
    times: Times = "overlapping"
    every: bool = False
    strict: bool = False
    neighbours: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    own_m: Metres | None = None
    reference_m: Metres | None = None
    again: Annotated[float, Meta(ge=0.01, le=86400)] = 2.0
    cell: tuple[Metres, Seconds] = (100.0, 1.0)
    recent_s: Seconds = 5.0


def reuse_of(config: ReuseConfig) -> Reuse:
    """Raises McepError."""
    managers = tuple(Managed(each.name, each.broker, each.operators) for each in config.managers)
    least = {
        key: Quality(*config.by_query[query])
        for each in managers
        for key in each.operators
        for query, _ in [split_key(key)]
        if query in config.by_query
    }
    if strangers := sorted(set(config.by_query) - {split_key(k)[0] for m in managers for k in m.operators}):
        raise McepError(f"{strangers[0]} shares nothing, and has a quality that shared results must have")
    if config.seconds and config.selections > 1:
        raise McepError("a batch is by count or by time, not by both")
    batching: Batching = Timed(config.seconds) if config.seconds else Counted(config.selections)
    rules = Rules(
        Quality(*config.least),
        least,
        ESTIMATES[config.similarity],
        every=config.every,
        times=config.times,
        strict=config.strict,
    )
    cell = CellSize(*config.cell) if config.similarity == "grid" else None
    settings = Settings(rules, HEURISTIC_OF[config.algorithm], batching, recent_s=config.recent_s, cell=cell)
    reach = Reach(_limit(config.neighbours), _limit(config.own_m), _limit(config.reference_m))
    return Reuse(settings, managers, config.period, reach, config.again)


def _limit(value: float | None) -> float:
    return math.inf if value is None else value
