"""What an agent is given of operators that move, as plain bounded data."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from node_agent.apps.mcep.moving.settings import (
    MOST_STATE,
    MOST_STEPS,
    Distances,
    Migration,
    Planning,
    Scheduled,
)
from node_agent.migration.live.values import Method

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Seconds = Annotated[float, Meta(ge=0, le=30 * 86400.0)]
_Metres = Annotated[float, Meta(gt=0, le=1e9)]
Policy = Literal["weighted_sum", "naive", "k_shortest"]
Mobiles = Literal["linear", "navigation", "learned"]


class MoveConfig(Struct, frozen=True):
    at: _Seconds
    operator: _Name
    to: _Name


class PlanConfig(Struct, frozen=True):
    """``route``: of ``navigation``, seconds and places. ``reach``: metres around the present broker within
    which others are considered; None: all are. ``refresh``: seconds after which mobiles plan anew."""

    policy: Policy = "weighted_sum"
    mobiles: Mobiles = "linear"
    step: Annotated[float, Meta(ge=0.25, le=86400)] = 4.0
    steps: Annotated[int, Meta(ge=2, le=MOST_STEPS)] = 25
    refresh: Annotated[float, Meta(ge=0.25, le=86400)] = 20.0
    reach: _Metres | None = None
    paths: Annotated[int, Meta(ge=1, le=32)] = 4
    route: Annotated[tuple[tuple[_Seconds, float, float], ...], Meta(max_length=2000)] = ()


class MigrateConfig(Struct, frozen=True):
    """``state``: bytes by operator. ``greedy``: seconds between two looks. ``limit``: seconds that a path
    from a source to the consumer may take. ``room``: operators that a broker takes; all others take any
    number."""

    method: Literal["live", "stop_and_copy"] = "live"
    state: dict[_Name, Annotated[int, Meta(ge=0, le=MOST_STATE)]] = {}
    moves: Annotated[tuple[MoveConfig, ...], Meta(max_length=10_000)] = ()
    plan: PlanConfig | None = None
    greedy: Annotated[float, Meta(ge=0.25, le=86400)] | None = None
    limit: Annotated[float, Meta(gt=0, le=3600)] | None = None
    room: dict[_Name, Annotated[float, Meta(ge=0, le=1e6)]] = {}


class BetweenConfig(Struct, frozen=True):
    """Seconds and bytes a second between each two brokers, in their order."""

    latency: tuple[tuple[Annotated[float, Meta(ge=0, le=3600)], ...], ...]
    bandwidth: tuple[tuple[Annotated[float, Meta(gt=0, le=1e12)], ...], ...]


def migration_of(given: MigrateConfig, brokers: tuple[str, ...], between: BetweenConfig | None) -> Migration:
    """Raises McepError."""
    distances = None if between is None else Distances.known(brokers, between.latency, between.bandwidth)
    plan = given.plan
    planning = None
    if plan is not None:
        planning = Planning(
            plan.policy, plan.mobiles, plan.step, plan.steps, plan.refresh, plan.reach, plan.paths,
            tuple(((x, y), t) for t, x, y in plan.route),
        )  # fmt: skip
    return Migration(
        Method(given.method),
        given.state,
        tuple(Scheduled(each.at, each.operator, each.to) for each in given.moves),
        distances,
        planning,
        given.greedy,
        given.limit,
        given.room,
    )
