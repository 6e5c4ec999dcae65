"""What the paper states about its Figures 5 to 9: ratios to one replica, and claims in words.

The files of ``experiments/paper`` repeat these figures. The report puts the paper's values beside ours, and
``benchmarks/paper`` does so for many seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from orchestrator.results.markup import NOTHING, table
from orchestrator.results.views import View

SPEED, AREA, THRESHOLD, REPLICAS = (
    "topology.mobility.speed",
    "topology.area",
    "switching.threshold",
    "replicas",
)
GOODPUT, LATENCY = "goodput_fps", "latency_p95_s"


@dataclass(frozen=True)
class Claim:
    """``by``: the factor beside the replicas; empty: there is none. ``stated``: the paper's ratio to k=1, by
    the factor's value and k. ``says``: what it says without numbers. ``experiments``: whose runs show it.
    """

    number: int
    title: str
    metric: str
    by: str
    by_words: Mapping[Any, str]
    stated: Mapping[tuple[Any, int], float]
    says: str
    experiments: tuple[str, ...]

    def value(self, factors: Mapping[str, Any]) -> Any:
        """Returns the cell's value of the factor; empty if replicas are all that varies."""
        return factors[self.by] if self.by else ""

    def label(self, factors: Mapping[str, Any]) -> str:
        """Returns it in words: ``10 m/s``, ``dense``."""
        return self.by_words[self.value(factors)]

    def fits(self, factors: Mapping[str, Any]) -> bool:
        """Says whether a cell varies what the figure varies, with values that the figure has."""
        varied = {REPLICAS, self.by} - {""}
        return factors.keys() == varied and self.value(factors) in self.by_words


_SPEEDS = {1.0: "1 m/s", 5.0: "5 m/s", 10.0: "10 m/s"}
_BY_SPEED = ("fig5", "fig6")

CLAIMS = {
    5: Claim(
        5,
        "Throughput by node speed",
        GOODPUT,
        SPEED,
        _SPEEDS,
        {(1.0, 2): 1.3, (1.0, 3): 1.4, (5.0, 2): 1.6, (5.0, 3): 1.8, (10.0, 2): 2.1, (10.0, 3): 2.6},
        "Replication gains more the faster nodes are, while absolute throughput falls.",
        _BY_SPEED,
    ),
    6: Claim(
        6,
        "95th percentile of latency by node speed",
        LATENCY,
        SPEED,
        _SPEEDS,
        {(1.0, 2): 0.5, (1.0, 3): 0.5, (5.0, 2): 0.5, (5.0, 3): 0.6, (10.0, 2): 1.0, (10.0, 3): 0.8},
        "With replication the mean 95th percentile is below a second at 1 and 5 m/s, and about a second at "
        "10 m/s.",
        _BY_SPEED,
    ),
    7: Claim(
        7,
        "Throughput in a network of 50 nodes at 5 m/s",
        GOODPUT,
        "",
        {"": "50 nodes"},
        {("", 2): 1.8, ("", 3): 2.3},
        "Absolute throughput is lower than with 25 nodes; replication still helps.",
        ("fig7",),
    ),
    8: Claim(
        8,
        "Throughput in a dense and in a sparse network, 3 operators, 4 m/s",
        GOODPUT,
        AREA,
        {"1500 m x 1500 m": "dense", "3135 m x 3135 m": "sparse"},
        {},
        "Dense: k = 2 helps, k = 3 hardly more, larger k cost throughput. Sparse: k > 3 still helps; "
        "absolute throughput is lower than in the dense network.",
        ("fig8",),
    ),
    9: Claim(
        9,
        "Throughput with switching thresholds of 1 and 3 hops, dense, 3 operators, 10 m/s",
        GOODPUT,
        THRESHOLD,
        {1.0: "threshold 1", 3.0: "threshold 3"},
        {},
        "The higher threshold improves throughput for larger k, by avoiding switches that do not pay.",
        ("fig9",),
    ),
}

_NOTE = (
    "Ratios of means to k = 1, with 95 % intervals over paired runs; goodput stands for the paper's "
    "throughput. The paper leaves much open that matters: experiments/paper says what, and what was chosen."
)


def paper_section(view: View) -> str:
    """Returns the report's section with the paper's values beside ours; empty for other experiments."""
    parts = []
    for claim in CLAIMS.values():
        rows = _rows(claim, view) if view.place.experiment in claim.experiments else []
        if rows:
            said = f'<p class="soft">The paper: {escape(claim.says)}</p>'
            headings = ["", "k", "paper", "ours", "95 %", "pairs"]
            title = f"Figure {claim.number}: {escape(claim.title)}"
            parts.append(f"<h3>{title}</h3>{said}{table(headings, rows)}")
    note = f'<p class="soft">{escape(_NOTE)}</p>'
    return f'<h2 id="paper">Beside the paper</h2>{"".join(parts)}{note}\n' if parts else ""


def _rows(claim: Claim, view: View) -> list[list[str]]:
    rows = []
    for cell in view.groups:
        factors = cell["factors"]
        if not claim.fits(factors) or "versus" not in cell or cell["versus"]["factors"] == factors:
            continue
        ratio = cell["versus"]["ratios"][claim.metric]
        stated = claim.stated.get((claim.value(factors), factors[REPLICAS]))
        within = ratio["ratio_of_means_95"]
        rows.append(
            [
                escape(claim.label(factors)),
                escape(str(factors[REPLICAS])),
                NOTHING if stated is None else f"{stated:.1f}×",
                NOTHING if ratio["ratio_of_means"] is None else f"{ratio['ratio_of_means']:.2f}×",
                f"{within[0]:.2f} to {within[1]:.2f}" if within else NOTHING,
                str(ratio["pairs"]),
            ]
        )
    return rows
