"""Whether a document that lies where results are kept is one: it may be old, damaged or somebody else's."""

from typing import Any

from msgspec import Struct, ValidationError, convert

Cell = bool | int | float | str | None
Rows = list[list[Cell]]


class _Metrics(Struct):
    """Those that every run has."""

    emitted: int
    delivered: int
    duplicates: int
    in_flight_at_end: int
    lost: int
    loss_ratio: float | None
    fates: dict[str, int]
    throughput_fps: float | None
    throughput_kbps: float | None
    goodput_fps: float | None
    latency_mean_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_p99_s: float | None
    latency_max_s: float | None
    switches: int
    no_route_s: float
    source_sink_connected_ratio: float | None
    routing_overhead_bps: float | None
    routing_overhead: dict[str, dict[str, float | None]] | None


class _Series(Struct):
    window_s: tuple[float | None, float | None]
    ended_s: float | None
    deliveries: list[tuple[float, float, float]]
    routes: list[tuple[float, str, str, str | None]]
    connectivity: list[tuple[float, float, bool]]
    positions: dict[str, list[tuple[float, float]]]
    links: list[Any]
    neighbours: Rows
    boots: dict[str, Rows]
    faults: list[Any]


class _Result(Struct):
    stamp: str
    metrics: _Metrics
    operator_faults: dict[str, int]
    telemetry: dict[str, int]
    nodes: dict[str, dict[str, int]]
    latency_quantiles_s: list[float]
    series: _Series


def is_result(document: Any) -> bool:
    try:
        convert(document, _Result)
    except ValidationError:
        return False
    return True
