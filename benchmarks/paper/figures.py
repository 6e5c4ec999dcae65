"""Which cells each of the paper's Figures 5 to 9 needs. ``orchestrator.apps.dataflow.paper`` has what the
paper states.

The files ``experiments/paper/fig5.yaml`` … are the base; their sweeps say which values a figure varies. A
*variant* gives other values to what the paper leaves open. It is a sweep over single values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.apps.dataflow.paper import AREA, CLAIMS, Claim
from orchestrator.planning.load import load_planned
from orchestrator.planning.sweep import Cell
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.sweep import SECTIONS_TO_VARY, Values

FOLDER = Path(__file__).parents[2] / "experiments" / "paper"
SEED = "seed"
CORE = "core"
"""The file as it is."""
THROUGHPUT, OFFERED = "throughput_fps", "offered_fps"

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
_SPARSER: dict[str, Changes] = {
    f"{timers}-1500m": {**of_timers, **_AREAS["1500m"]} for timers, of_timers in _TIMERS.items()
}
# As dense as 25 nodes in 1500 m x 1500 m.
_SPARSER_50: dict[str, Changes] = {"authors-2121m": {**_TIMERS["authors"], AREA: "2121 m x 2121 m"}}
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
    "authors-1500m": "the authors' later timers in an area of 1500 m x 1500 m",
    "olsrd-1500m": "olsrd's default timers in an area of 1500 m x 1500 m",
    "authors-2121m": "the authors' later timers in an area of 2121 m x 2121 m",
    "1kB": "tuples of 1 KiB, as the prototype's of early 2015",
    "5fps": "5 tuples/s, which most paths carry",
    "faces": "real pictures through face detection and recognition",
    "olsr": "OLSR by hop count in place of AODV",
}


@dataclass(frozen=True, kw_only=True)
class PaperFigure(Claim):
    """``across``: the factor's values are compared with each other, too."""

    variants: Mapping[str, Changes]
    key: str
    across: bool = False

    @property
    def file(self) -> Path:
        return FOLDER / f"fig{self.number}.yaml"


def _figure(number: int, variants: Mapping[str, Changes], key: str, across: bool = False) -> PaperFigure:
    return PaperFigure(**vars(CLAIMS[number]), variants={CORE: {}, **variants}, key=key, across=across)


FIGURES = {
    5: _figure(5, {**_TIMERS, **_AREAS, **_SPARSER, **_LOADS, **_FACES}, "fig5_gain"),
    6: _figure(6, {**_TIMERS, **_AREAS, **_SPARSER, **_LOADS, **_FACES}, "fig6_latency"),
    7: _figure(7, {**_TIMERS, **_SPARSER_50, **_FACES}, "fig7_gain"),
    8: _figure(8, _OLSR, "fig8_gain"),
    9: _figure(9, _OLSR, "fig9_gain", across=True),
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
