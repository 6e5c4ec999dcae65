"""Short experiments that together use most features of virtual time.

They are plain documents, as a user would write them into a file. They import nothing of the product, so the
same experiments can be run before and after its modules move.
"""

from typing import Any

Document = dict[str, Any]

DISC = {"model": "disc", "range": "300 m", "bandwidth": "11 Mb/s", "latency": "1 ms"}
WIFI = {"model": "80211b"}
WAYPOINTS = {
    "model": "random_waypoint",
    "speed": "25 m/s",
    "speed_spread": "5 m/s",
    "pause": "1 s",
    "pause_spread": "0.5 s",
}
GAUSS_MARKOV = {"model": "gauss_markov", "speed": "25 m/s", "speed_deviation": "5 m/s", "alpha": 0.8}
GROUPS = {
    "model": "group",
    "groups": 3,
    "radius": "150 m",
    "speed": "25 m/s",
    "speed_spread": "5 m/s",
    "pause": "1 s",
    "member_speed": "3 m/s",
    "member_speed_spread": "1 m/s",
}
RANDOM_WALK = {"model": "random_walk", "speed": "25 m/s", "speed_spread": "5 m/s", "time": "4 s"}

# Two ways from s to z: over a0 and b0, and over a1 and b1, which cost more.
TWO_WAYS = {"s": (0, 0), "a0": (90, 0), "b0": (180, 0), "z": (270, 0), "a1": (90, 90), "b1": (180, 90)}
ON_TWO_WAYS = {"camera": ["s"], "detect": ["a0", "a1"], "recognise": ["b0", "b1"], "screen": ["z"]}


def moving(mobility: Document, radio: Document, nodes: int = 10, side: int = 600) -> Document:
    area = f"{side} m x {side} m"
    return {"name": "moving", "nodes": nodes, "area": area, "mobility": mobility, "radio": radio}


def grid(columns: int, rows: int, spacing: int, radio: Document) -> Document:
    return {
        "name": "grid",
        "nodes": columns * rows,
        "area": f"{columns * spacing} m x {rows * spacing} m",
        "mobility": {"model": "static", "grid": {"columns": columns, "spacing": f"{spacing} m"}},
        "radio": radio,
    }


def two_ways(radio: Document) -> Document:
    return {
        "name": "two-ways",
        "nodes": list(TWO_WAYS),
        "area": "300 m x 100 m",
        "mobility": {"model": "static", "positions": {node: list(at) for node, at in TWO_WAYS.items()}},
        "radio": radio,
        "costs": {"a1": 3.0, "b1": {"cpu": 1.0, "battery": 2.0}},
    }


def chain(reliability: str = "best_effort", **parameters: Any) -> Document:
    """camera → detect → recognise → screen"""
    given = {"rate": "10 fps", "payload": "2 kB", "cpu": "5 ms"} | parameters
    return {"name": "synthetic_chain", "operators": 2, "reliability": reliability, **given}


def windows(reliability: str) -> Document:
    """Two sources, a union, a join on τ, count and time windows, two sinks."""
    return {
        "reliability": reliability,
        "operators": {
            "left": {"kind": "synthetic_source", "rate": "8 fps", "payload": "600 B"},
            "right": {"kind": "synthetic_source", "rate": "8 fps", "payload": "400 B"},
            "both": {"kind": "match", "after": ["left", "right"], "join": "tau", "key": 1},
            "counted": {"kind": "work", "after": "both", "window": {"count": 4, "slide": 2}, "cpu": "3 ms"},
            "any": {"kind": "union", "after": ["left", "right"]},
            "timed": {"kind": "work", "after": "any", "window": {"time": "1s", "slide": "500 ms"}},
            "one": {"kind": "sink", "after": "counted"},
            "other": {"kind": "sink", "after": "timed"},
        },
    }


def experiment(name: str, seconds: float, topology: Document | str, query: Any, **rest: Any) -> Document:
    return {
        "name": name,
        "backend": "sim",
        "topology": topology,
        "query": query,
        "warmup": "2s",
        "duration": seconds,
        **rest,
    }


def policy(name: str, **rest: Any) -> Document:
    return {"policy": name, "period": "1s", **rest}


EXPERIMENTS: tuple[Document, ...] = (
    experiment(
        "line",
        10,
        grid(5, 1, 200, DISC | {"range": "250 m"}),
        {
            "operators": {
                "camera": {"kind": "synthetic_source", "rate": "10 fps", "payload": "1 kB"},
                "detect": {"kind": "work", "after": "camera", "cpu": "5 ms", "output": "300 B"},
                "screen": {"kind": "sink", "after": "detect"},
            }
        },
        placement={"policy": "explicit", "nodes": {"camera": ["n01"], "detect": ["n02"], "screen": ["n05"]}},
    ),
    experiment(
        "waypoints",
        20,
        moving(WAYPOINTS, WIFI, side=1000),
        chain(),
        routing={"protocol": "olsr", "metric": "etx"},
        replicas=3,
        placement={"policy": "random"},
        switching=policy("shortest_path", threshold="10%"),
        seed=3,
    ),
    experiment(
        "spread",
        20,
        moving(WAYPOINTS, DISC),
        chain("at_least_once"),
        routing="ground_truth",
        replicas=3,
        placement={"policy": "spread"},
        switching=policy("shortest_path"),
        seed=2,
    ),
    experiment(
        "spread-80211b",
        20,
        moving(WAYPOINTS, WIFI, nodes=12, side=1000),
        chain(rate="15 fps"),
        replicas=3,
        placement={"policy": "spread", "seed": 5},
        switching=policy("shortest_path"),
        seed=4,
    ),
    experiment(
        "backpressure",
        20,
        moving(GAUSS_MARKOV, DISC),
        chain("exactly_once", rate="30 fps", cpu="25 ms"),
        replicas={"detect": 2, "recognise": "auto"},
        switching=policy("backpressure", exponent=1),
        seed=5,
    ),
    experiment(
        "round-robin",
        20,
        moving(GROUPS, DISC, nodes=12, side=900),
        chain(),
        routing="aodv",
        replicas=2,
        switching=policy("round_robin", mode="exchange"),
        seed=6,
    ),
    experiment(
        "power-of-two",
        20,
        "recorded-6.yaml",
        chain("at_least_once", rate="25 fps", cpu="20 ms"),
        routing={"protocol": "ground_truth", "metric": "hops"},
        replicas=2,
        placement={"policy": "colocate"},
        switching=policy("power_of_two"),
    ),
    experiment(
        "power-of-two-exchange",
        20,
        moving(GROUPS, WIFI, nodes=12, side=900),
        chain("exactly_once", rate="20 fps", cpu="15 ms"),
        replicas=2,
        switching=policy("power_of_two", mode="exchange"),
        seed=8,
    ),
    experiment(
        "weighted",
        20,
        moving(RANDOM_WALK, {"model": "80211b", "preset": "ns3-range", "rts": "500 B"}),
        chain(),
        routing={"protocol": "olsr", "metric": "hops", "authentication": True, "fisheye": False},
        replicas=3,
        switching=policy("weighted"),
        seed=9,
    ),
    experiment(
        "random",
        20,
        moving(GAUSS_MARKOV | {"border": "steer"}, DISC) | {"capacity": 2},
        chain("at_least_once"),
        routing={"protocol": "olsr", "metric": "log_delivery", "quality": "etx_float"},
        replicas=2,
        placement={"policy": "colocate"},
        switching=policy("random"),
        seed=10,
    ),
    experiment(
        "aodv-hello",
        20,
        moving(WAYPOINTS, WIFI, side=1000),
        chain("at_least_once"),
        routing={"protocol": "aodv", "detection": "hello", "authentication": True},
        replicas=2,
        switching=policy("shortest_path", mode="exchange"),
        seed=11,
    ),
    experiment(
        "crashes",
        16,
        two_ways(WIFI),
        chain("exactly_once", rate="20 fps"),
        replicas=2,
        placement={"policy": "explicit", "nodes": ON_TWO_WAYS},
        faults=[
            {"at": 3.3, "for": 4, "crash": {"operator": "detect", "replica": 0}},
            {"at": 9.7, "for": 3, "silence": {"operator": "recognise", "replica": 0}},
        ],
    ),
    experiment(
        "crashes-best-effort",
        14,
        two_ways(DISC | {"range": "150 m"}),
        chain(rate="20 fps"),
        replicas=2,
        placement={"policy": "explicit", "nodes": ON_TWO_WAYS},
        switching=policy("shortest_path", mode="exchange"),
        faults=[
            {"at": 4.1, "silence": {"operator": "recognise", "replica": 0}},
            {"at": 4.1, "crash": {"operator": "recognise", "replica": 0}},
            {"at": 8.2, "for": 2, "crash": {"node": "a0"}},
        ],
    ),
    experiment(
        "overflow-spill",
        10,
        moving(WAYPOINTS, DISC),
        chain("exactly_once", rate="40 fps", cpu="40 ms"),
        replicas=2,
        delivery={
            "buffer": 40,
            "buffer_bytes": "20 kB",
            "overflow": "spill",
            "spill": "40 kB",
            "in_flight": 8,
        },
        seed=13,
    ),
    experiment(
        "overflow-drop",
        10,
        two_ways(DISC | {"range": "150 m"}),
        chain("at_least_once", rate="40 fps", cpu="30 ms"),
        replicas=2,
        placement={"policy": "explicit", "nodes": ON_TWO_WAYS},
        switching=policy("static"),
        delivery={"buffer": 20, "overflow": "drop_oldest", "sources": "drop", "unacknowledged": "1s"},
        faults=[{"at": 3, "for": 3, "silence": {"node": "b0"}}],
    ),
    experiment(
        "checkpoint",
        12,
        grid(3, 3, 100, WIFI),
        {"python": "checkpoint.py:build", "arguments": {"limit": 60}, "reliability": "exactly_once"},
        replicas={"plausible": 1, "too_fast": 2, "summary": 2},
        faults=[{"at": 5, "for": 3, "crash": {"operator": "too_fast", "replica": 0}}],
    ),
    experiment(
        "windows",
        20,
        moving(WAYPOINTS, DISC, nodes=12),
        windows("best_effort"),
        routing="ground_truth",
        replicas={"both": 2, "counted": 2, "any": 1, "timed": 2},
        seed=14,
    ),
    experiment(
        "windows-exchange",
        20,
        moving(WAYPOINTS, WIFI, nodes=12, side=900),
        windows("at_least_once"),
        replicas={"both": 2, "counted": 1, "any": 2, "timed": 2},
        switching=policy("weighted", mode="exchange"),
        faults=[
            {"at": 3, "for": 3, "silence": {"operator": "both", "replica": 0}},
            {"at": 5, "for": 3, "crash": {"operator": "timed", "replica": 0}},
        ],
        seed=15,
    ),
    experiment("faces", 6, grid(3, 2, 150, WIFI), "face_recognition", replicas=2),
    experiment(
        "faces-of-two-cameras",
        5,
        grid(3, 3, 150, DISC),
        {"name": "video_correlation", "rate": "3 fps", "reliability": "exactly_once"},
        placement={"policy": "colocate"},
    ),
    experiment(
        "heat-map", 5, grid(4, 3, 150, DISC), {"name": "heat_map", "cameras": 2, "rate": "3 fps"}, replicas=1
    ),
)
