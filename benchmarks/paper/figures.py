"""What each of the paper's Figures 5 to 9 shows, what the paper states about it, and which cells it needs.

The files ``experiments/paper/fig5.yaml`` … are the base; their sweeps say which values a figure varies. A
*variant* gives other values to what the paper leaves open. It is a sweep over single values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.planning.load import load_planned
from orchestrator.planning.sweep import Cell
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.sweep import SECTIONS_TO_VARY, Values

FOLDER = Path(__file__).parents[2] / "experiments" / "paper"
SPEED, AREA, THRESHOLD, REPLICAS, SEED = (
    "topology.mobility.speed",
    "topology.area",
    "switching.threshold",
    "replicas",
    "seed",
)
CORE = "core"
"""The file as it is."""
GOODPUT, LATENCY, THROUGHPUT, OFFERED = "goodput_fps", "latency_p95_s", "throughput_fps", "offered_fps"

Changes = Mapping[str, Any]
"""Values by their paths in the file."""

_TIMERS: dict[str, Changes] = {
    "authors": {
        "routing": {
            "protocol": "olsr",
            "metric": "etx",
            "hello": "1s",
            "hello_validity": "10s",
            "tc": "500 ms",
            "tc_validity": "15s",
        }
    },
    "olsrd": {
        "routing": {
            "protocol": "olsr",
            "metric": "etx",
            "hello": "2s",
            "hello_validity": "20s",
            "tc": "5s",
            "tc_validity": "300s",
        }
    },
}
_FACES: dict[str, Changes] = {
    "faces": {
        "query": {
            "name": "face_recognition",
            "width": 320,
            "height": 240,
            "quality": 80,
            "rate": "saturate",
            "forward": "frames",
        }
    }
}
_AREAS: dict[str, Changes] = {f"{side}m": {AREA: f"{side} m x {side} m"} for side in (1500, 2000)}
_LOADS: dict[str, Changes] = {"1kB": {"query.payload": "1 KiB"}, "5fps": {"query.rate": "5 fps"}}
_OLSR: dict[str, Changes] = {
    "olsr": {"routing": {"protocol": "olsr", "metric": "hops"}, "switching.mode": "link_state"}
}
IN_WORDS = {
    CORE: "as in the file",
    "authors": "the authors' later timers: HELLO 1 s (valid 10 s), TC 0.5 s (15 s)",
    "olsrd": "olsrd's default timers: HELLO 2 s (valid 20 s), TC 5 s (300 s)",
    "1500m": "area 1500 m x 1500 m",
    "2000m": "area 2000 m x 2000 m",
    "1kB": "tuples of 1 KiB, as the prototype's of early 2015",
    "5fps": "5 tuples/s, which most paths carry",
    "faces": "real pictures through face detection and recognition",
    "olsr": "OLSR by hop count in place of AODV",
}


@dataclass(frozen=True)
class PaperFigure:
    """``by``: the factor beside the replicas; empty: there is none. ``stated``: the paper's ratio to k=1, by
    the factor's value and k. ``says``: what it says without numbers. ``across``: the factor's values are
    compared with each other, too.
    """

    number: int
    title: str
    metric: str
    by: str
    by_words: Mapping[Any, str]
    variants: Mapping[str, Changes]
    key: str
    stated: Mapping[tuple[Any, int], float]
    says: str
    across: bool = False

    @property
    def file(self) -> Path:
        return FOLDER / f"fig{self.number}.yaml"

    def value(self, factors: Mapping[str, Any]) -> Any:
        """Returns the cell's value of the factor; empty if replicas are all that varies."""
        return factors[self.by] if self.by else ""

    def label(self, factors: Mapping[str, Any]) -> str:
        """Returns it in words: ``10 m/s``, ``dense``."""
        return self.by_words[self.value(factors)]


_SPEEDS = {1.0: "1 m/s", 5.0: "5 m/s", 10.0: "10 m/s"}

FIGURES = {
    5: PaperFigure(
        5,
        "Throughput by node speed",
        GOODPUT,
        SPEED,
        _SPEEDS,
        {CORE: {}, **_TIMERS, **_AREAS, **_LOADS, **_FACES},
        "fig5_gain",
        {(1.0, 2): 1.3, (1.0, 3): 1.4, (5.0, 2): 1.6, (5.0, 3): 1.8, (10.0, 2): 2.1, (10.0, 3): 2.6},
        "Replication gains more the faster nodes are, while absolute throughput falls.",
    ),
    6: PaperFigure(
        6,
        "95th percentile of latency by node speed",
        LATENCY,
        SPEED,
        _SPEEDS,
        {CORE: {}, **_TIMERS, **_AREAS, **_LOADS, **_FACES},
        "fig6_latency",
        {(1.0, 2): 0.5, (1.0, 3): 0.5, (5.0, 2): 0.5, (5.0, 3): 0.6, (10.0, 2): 1.0, (10.0, 3): 0.8},
        "With replication the mean 95th percentile is below a second at 1 and 5 m/s, and about a second at "
        "10 m/s.",
    ),
    7: PaperFigure(
        7,
        "Throughput in a network of 50 nodes at 5 m/s",
        GOODPUT,
        "",
        {"": "50 nodes"},
        {CORE: {}, **_TIMERS, **_FACES},
        "fig7_gain",
        {("", 2): 1.8, ("", 3): 2.3},
        "Absolute throughput is lower than with 25 nodes; replication still helps.",
    ),
    8: PaperFigure(
        8,
        "Throughput in a dense and in a sparse network, 3 operators, 4 m/s",
        GOODPUT,
        AREA,
        {"1500 m x 1500 m": "dense", "3135 m x 3135 m": "sparse"},
        {CORE: {}, **_OLSR},
        "fig8_gain",
        {},
        "Dense: k = 2 helps, k = 3 hardly more, larger k cost throughput. Sparse: k > 3 still helps; "
        "absolute throughput is lower than in the dense network.",
    ),
    9: PaperFigure(
        9,
        "Throughput with switching thresholds of 1 and 3 hops, dense, 3 operators, 10 m/s",
        GOODPUT,
        THRESHOLD,
        {1.0: "threshold 1", 3.0: "threshold 3"},
        {CORE: {}, **_OLSR},
        "fig9_gain",
        {},
        "The higher threshold improves throughput for larger k, by avoiding switches that do not pay.",
        across=True,
    ),
}


def planned(figure: PaperFigure, variant: str, backend: str, also: Changes | None = None) -> tuple[Cell, ...]:
    """Returns the figure's cells with the first seed. ``also``: further changes, such as a short duration."""
    return cells_in(figure.file, {**figure.variants[variant], **(also or {}), "backend": backend, SEED: 1})


def cells_in(file: Path, changes: Changes) -> tuple[Cell, ...]:
    """Returns the cells of a file with some values changed; those that its sweep varies vary no more."""

    def change(experiment: Experiment) -> Experiment:
        varied = {**experiment.sweep, **{path: _only(path, value) for path, value in changes.items()}}
        return experiment.model_copy(update={"sweep": varied})

    return load_planned(file, change).cells


def _only(path: str, value: Any) -> Values:
    """Returns a sweep's single choice; whole sections other than the routing have names in tables."""
    is_named = isinstance(value, dict) and path not in SECTIONS_TO_VARY
    return {value["name"]: value} if is_named else (value,)
