"""The report's section on radio and connectivity: how far frames should get, and which nodes could hear each
other.
"""

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from orchestrator.analytics.core.values import CONNECTED
from orchestrator.analytics.parts import drawings, punctuality, shown_figures
from orchestrator.errors import BadInput
from orchestrator.planning.load import Network, load_network
from orchestrator.planning.radio_outlook import ranges_in_words, reach
from orchestrator.results.colours import FAINT, INK, SERIES
from orchestrator.results.faults import HINT, faults_of, mark
from orchestrator.results.inputs import RunInput
from orchestrator.results.markup import definitions
from orchestrator.results.svg import WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell, Result, View, most_telling, which
from orchestrator.runs.files import readable
from orchestrator.spec.backends import traits_of
from orchestrator.spec.topology import Topology

OWN_RADIO = "the nodes' own: nothing is known of it here"


def _network_of(run: RunInput) -> Network | None:
    """Loads the network from the run's own spec.yaml; None if that is gone or has another version of the
    format.

    It does not load the whole experiment: a query in Python is code, and the run may be somebody else's.
    """
    if readable(run.directory.spec) is None:
        return None
    try:
        return load_network(run.directory.spec)
    except (BadInput, RecursionError):
        return None


def _modelled(network: Network | None) -> Topology | None:
    """Returns the topology if the run modelled its radio;
    None if that is unknown or nodes had real radios.
    """
    return None if network is None or traits_of(network.backend).own_machines else network.topology


def facts(view: View) -> dict[str, str]:
    """Describes the radio of one run in words."""
    _, (run, result) = most_telling(view.cells)
    network = _network_of(run)
    topology = _modelled(network)
    found: dict[str, str] = {}
    if network is not None and traits_of(network.backend).own_machines:
        links = network.topology.links
        found["radio"] = OWN_RADIO if links is None else f"emulated links: {links.summary()}"
    if topology is not None:
        found["radio"] = "; ".join(topology.radio.summary())
        known = reach(topology)
        found["range"] = ranges_in_words(known.ranges_m if known else {})
    if moments := _moments(result):
        mean = math.fsum(mean for _, mean, *_ in moments) / len(moments)
        least, most = min(moment[2] for moment in moments), max(moment[3] for moment in moments)
        found["neighbours of a node"] = f"{mean:.1f} in the mean, between {least} and {most}"
    elif result["series"]["positions"]:
        found["neighbours of a node"] = "none, ever: nobody was in range of anybody"
    for name, app in (view.apps or {view.app: view}).items():
        _, (_, of_app) = most_telling(app.cells)
        ratio = of_app["metrics"].get(CONNECTED.name)
        if ratio is not None:
            whose = f"source to sink, {name}" if view.apps else "source to sink"
            found[whose] = f"connected {100 * ratio:.1f} % of the measured window{_hops(of_app)}"
    return found


def radio(view: View) -> str:
    """Returns the section: facts in words, and the figures about the radio."""
    known, drawn = facts(view), drawings(view, "radio")
    if not known and not drawn:
        return ""
    cell, (run, _) = most_telling(view.cells)
    whose = f'<p class="soft">{escape(which(cell, run).strip(" ()"))}</p>' if cell.label else ""
    # If there is only one run, the verdict already shows how punctual the radio was.
    late = "" if "radio" in view.summary else punctuality(run.punctuality() or {})
    return f"<h2>Radio and connectivity</h2>{whose}{definitions(known)}{late}{shown_figures(drawn)}\n"


def _moments(result: Result) -> list[list[Any]]:
    """Returns time, mean, least and most neighbours; empty if no link was recorded."""
    moments: list[list[Any]] = result["series"].get("neighbours") or []
    return moments


def _hops(result: Result) -> str:
    begin, end = result["series"]["window_s"]
    counts = Counter(
        hops
        for t_s, hops in result["series"].get("hops") or []
        if hops is not None and (begin or 0) <= t_s and (end is None or t_s < end)
    )
    whole = counts.total()
    shares = (
        f"{hops} {'hop' if hops == 1 else 'hops'} ({100 * count / whole:.0f} %)"
        for hops, count in sorted(counts.items())
    )
    return f", then over {', '.join(shares)}" if whole else ""


def delivery_by_distance(cells: Sequence[Cell]) -> Figure | None:
    cell, (run, _) = most_telling(cells)
    topology = _modelled(_network_of(run))
    found = reach(topology) if topology is not None else None
    if found is None:
        return None
    panels = 1 if found.snr_db is None else 2
    with canvas(panels, figsize=(WIDTH, 0.8 + 1.9 * panels), sharex=True) as (drawing, axes):
        upper = axes[0, 0]
        upper.plot(found.distances_m, [100 * share for share in found.expected], color=SERIES[0])
        upper.set_ylim(0, 105)
        upper.set_ylabel("arrive (%)")
        if found.snr_db is not None:
            levels = [level if math.isfinite(level) else math.nan for level in found.snr_db]
            axes[1, 0].plot(found.distances_m, levels, color=SERIES[1])
            axes[1, 0].set_ylabel("SNR (dB)")
        for axis in axes[:, 0]:
            for distance in found.ranges_m.values():
                axis.axvline(distance, color=FAINT, linewidth=1.0, linestyle="--", zorder=0)
        for share, distance in _apart(found.ranges_m).items():
            text = f"{100 * share:.0f} %: {distance:.0f} m"
            upper.annotate(
                text,
                (distance, 100 * share),
                xytext=(-6, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8,
                color=INK,
            )
        axes[-1, 0].set_xlim(0, found.distances_m[-1])
        axes[-1, 0].set_xlabel("distance (m)")
        alternative = f"Expected delivery over distance: {ranges_in_words(found.ranges_m)}."
        alternative += _spoken_snr(found.distances_m, found.snr_db)
        title = f"Full frames over distance, on a silent radio{which(cell, run)}"
        return finish(drawing, "reach", title, alternative)


def _apart(ranges_m: dict[float, float]) -> dict[float, float]:
    """Labels only the middle one of shares that end at the same distance."""
    if len({*ranges_m.values()}) > 1:
        return ranges_m
    share = sorted(ranges_m)[len(ranges_m) // 2]
    return {share: ranges_m[share]}


def _spoken_snr(distances_m: list[float], snr_db: list[float] | None) -> str:
    heard = [(d, level) for d, level in zip(distances_m, snr_db or (), strict=False) if math.isfinite(level)]
    if not heard:
        return ""
    middle, last = heard[len(heard) // 2], heard[-1]
    return f" SNR: {middle[1]:.0f} dB at {middle[0]:.0f} m, {last[1]:.0f} dB at {last[0]:.0f} m."


def degrees(cells: Sequence[Cell]) -> Figure | None:
    cell, (run, result) = most_telling(cells)
    moments = _moments(result)
    if not moments:
        return None
    moments = [*moments, [result["series"]["ended_s"], *moments[-1][1:]]]
    times = [moment[0] for moment in moments]
    with canvas(figsize=(WIDTH, 2.6)) as (drawing, axes):
        axis = axes[0, 0]
        least, most = [moment[2] for moment in moments], [moment[3] for moment in moments]
        axis.fill_between(times, least, most, step="post", color=SERIES[0], alpha=0.2, linewidth=0)
        axis.step(times, [moment[1] for moment in moments], where="post", color=SERIES[0])
        axis.set_ylim(0, max(most) + 1)
        axis.set_xlim(0, times[-1])
        faults = faults_of(result)
        mark(axis, faults, times[-1])
        axis.set_xlabel(f"time since start (s); line: mean, band: fewest to most{HINT if faults else ''}")
        axis.set_ylabel("neighbours")
        mean = math.fsum(moment[1] for moment in moments[:-1]) / (len(moments) - 1)
        alternative = (
            f"Neighbours of a node over time, by ground truth: {mean:.1f} in the mean, "
            f"never fewer than {min(least)}, never more than {max(most)}."
        )
        return finish(drawing, "degree", f"How many neighbours nodes had{which(cell, run)}", alternative)
