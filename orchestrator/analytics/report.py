"""The report: one HTML page that needs nothing but itself, for one run or for a sweep."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from orchestrator.analytics.cells import SEED, cells
from orchestrator.analytics.clocks_view import clocks
from orchestrator.analytics.faces_view import faces
from orchestrator.analytics.faults_view import faults
from orchestrator.analytics.figures import all_figures, radio_figures
from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.markup import NOTHING, bullets, definitions, number, passed_over, table
from orchestrator.analytics.overhead_view import overhead
from orchestrator.analytics.radio_view import facts
from orchestrator.analytics.sinks_view import sinks
from orchestrator.analytics.svg import Figure
from orchestrator.analytics.views import Cell, Result, label_of, most_telling, which
from orchestrator.runs.files import readable
from orchestrator.runs.refused import refused_text
from orchestrator.runs.run_directory import RunDirectory

# Nothing may be loaded from anywhere, whatever text found its way into the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

MEANINGS = {
    "goodput": "arrivals at the sink per second over the whole measured window, outages included",
    "loss": "share of tuples that never arrived; those still under way at the end do not count",
    "throughput": "arrivals per second between the first and the last one after warm-up: outages before and "
    "after them do not lower it",
    "latency": "arrival at the sink minus capture at the source",
    "switches": "how often a replica that carried tuples went over to another replica downstream",
    "connected": "share of time in which a path between source and sink existed at all (ground truth)",
}
SPOKEN_VERDICTS = {
    "valid": "Valid: these numbers can be used.",
    "invalid": "Invalid: it ran, but do not use these numbers.",
    "failed": "Failed: it did not do what was asked.",
}
MUCH_LOSS = 0.2
"""From here on the share of tuples that were lost is what a reader must see first."""


def render(place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]) -> str:
    """``summary`` is the directory's summary.json; ``runs`` are its runs with what was computed for each."""
    shown = _cells_of(runs)
    style = files("orchestrator.analytics").joinpath("report.css").read_text()
    sections = (
        _header(place, summary),
        _verdict(summary),
        _results(summary, runs),
        faults(shown),
        faces(shown),
        _figures(all_figures(shown), runs),
        overhead(shown),
        _radio(shown, said="radio" in summary),
        clocks(shown),
        _runs(runs) if len(runs) > 1 else "",
        _provenance(place, summary, runs),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(place.experiment)} · Rove report</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _cells_of(runs: Sequence[tuple[RunInput, Result]]) -> list[Cell]:
    """Of the runs that are in the means; of all if none is, so that one can see what went wrong."""
    groups: dict[str, list[tuple[RunInput, Result]]] = {}
    for run, result in _drawn_runs(runs):
        groups.setdefault(label_of(_factors(run)), []).append((run, result))
    return [Cell(label, _factors(group[0][0]), tuple(group)) for label, group in groups.items()]


def _drawn_runs(runs: Sequence[tuple[RunInput, Result]]) -> Sequence[tuple[RunInput, Result]]:
    return [pair for pair in runs if pair[0].is_usable] or runs


def _factors(run: RunInput) -> dict[str, Any]:
    return {name: value for name, value in run.factors.items() if name != SEED}


def _header(place: RunDirectory, summary: Mapping[str, Any]) -> str:
    when = (summary.get("started") or "").replace("T", " ")[:16]
    facts = " · ".join(escape(text) for text in (f"run {place.id}", when and f"{when} UTC") if text)
    return (
        f'<p class="kicker">Rove report</p><h1>{escape(place.experiment)}</h1><p class="soft">{facts}</p>\n'
    )


def _verdict(summary: Mapping[str, Any]) -> str:
    verdict = str(summary.get("verdict") or "")
    kind = verdict if verdict in SPOKEN_VERDICTS else "unknown"
    text = SPOKEN_VERDICTS.get(verdict, "No verdict: the run did not end in order, or is not judged yet.")
    text = _in_part(summary) or text
    reasons = bullets(summary.get("reasons") or [])
    radio = _punctuality(summary.get("radio") or {})
    refused = refused_text(summary.get("refused") or [], most=8)
    told = f'<p id="refused">Refused: {escape(refused)}.</p>' if refused else ""
    return (
        f'<section class="verdict {kind}"><strong>{escape(text)}</strong>{reasons}{told}{radio}</section>\n'
    )


def _in_part(summary: Mapping[str, Any]) -> str | None:
    """Of a sweep some runs of which are sound: the verdict of the whole must not be taken for theirs."""
    groups: Sequence[Mapping[str, Any]] = summary.get("cells") or ()
    used = sum(cell["n"] for cell in groups)
    left_out = sum(len(cell["excluded"]) for cell in groups)
    if not used or not left_out:
        return None
    whole = str(summary.get("verdict") or "unjudged").capitalize()
    rest = "the other one is" if left_out == 1 else f"the other {left_out} are"
    return f"{whole} as a whole: {used} of {used + left_out} runs can be used, {rest} not in the means."


def _punctuality(radio: Mapping[str, Any]) -> str:
    """Said of valid runs, too: how far from invalid they were."""
    if not radio:
        return ""
    return (
        f'<p class="soft">Radio: {radio["deliveries"]:,} deliveries, '
        f"{100 * radio['late_ratio']:.2f} % more than 1 ms late, p99 {radio['p99_us'] / 1e3:.2f} ms, "
        f"nodes moved unnoticed for at most {radio['channel_lag_max_ms']:.0f} ms.</p>"
    )


def _results(summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]) -> str:
    groups: Sequence[Mapping[str, Any]] = summary.get("cells") or cells([dict(summary)], [True])
    compared = any("versus" in cell for cell in groups)
    counts = {cell["n"] for cell in groups}
    several = max(counts) > 1
    headings = [
        "" if len(groups) > 1 else "run",
        "goodput<br>tuples/s",
        "loss<br>%",
        "throughput<br>tuples/s",
    ]
    headings += ["throughput<br>kbit/s", "latency p50<br>s", "latency p95<br>s", "switches", "connected<br>%"]
    headings += ["throughput<br>vs fewest k", "p95<br>vs fewest k"] if compared else []
    headings += ["runs"] if len(counts) > 1 else []
    rows = []
    for cell in groups:
        figures = cell["metrics"]
        label = label_of(cell["factors"]) or str(summary["run"])
        row = [
            escape(label),
            number(figures["goodput_fps"], 1, 2),
            _loss(figures["loss_ratio"]),
            number(figures["throughput_fps"], 1, 2),
            number(figures["throughput_kbps"], 1, 0),
            number(figures["latency_p50_s"], 1, 3),
            number(figures["latency_p95_s"], 1, 3),
            number(figures["switches"], 1, 0),
            number(figures["source_sink_connected_ratio"], 100, 1),
        ]
        if compared:
            ratios = cell.get("versus", {}).get("ratios", {})
            row += [number(ratios.get(name), 1, 2, "×") for name in ("throughput_fps", "latency_p95_s")]
        row += [str(cell["n"])] if len(counts) > 1 else []
        rows.append(row)
    notes = []
    if several:
        over = f"{max(counts)} seeds" if len(counts) == 1 else "seeds"
        notes.append(f"Mean ± standard deviation over {over}; ratios are between runs of the same seed.")
    excluded = [entry["run"] for cell in groups for entry in cell["excluded"]]
    if excluded:
        notes.append(f"Not in the means, because they are not valid: {', '.join(excluded)}.")
    if not any(result["metrics"]["delivered"] for _, result in runs):
        notes.append("Nothing was delivered in the measured window, so there is no latency to show.")
    if told := passed_over(summary.get("operator_faults") or {}):
        notes.append(f"What operators could not use was counted and passed over: {told}.")
    spoken = "".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
    return f"<h2>Results</h2>{table(headings, rows)}{spoken}{sinks(groups)}{_meanings()}\n"


def _loss(ratio: Mapping[str, Any]) -> str:
    text = number(ratio, 100, 1)
    return f'<strong class="bad">{text}</strong>' if (ratio["mean"] or 0.0) > MUCH_LOSS else text


def _meanings() -> str:
    meanings = definitions(MEANINGS)
    return f'<details class="card"><summary>What the columns mean</summary>{meanings}</details>'


def _figures(drawn: Sequence[Figure], runs: Sequence[tuple[RunInput, Result]]) -> str:
    if not drawn:
        return '<h2>Figures</h2><p class="soft">There is nothing to draw: the runs left no records.</p>\n'
    return f"<h2>Figures</h2>{_whose(runs)}{_drawn(drawn)}\n"


def _whose(runs: Sequence[tuple[RunInput, Result]]) -> str:
    unusable = [run.run for run, _ in runs if not run.is_usable]
    if len(runs) == 1 or not unusable:
        return ""
    if len(unusable) == len(runs):
        text = "None of the runs is valid: what is drawn shows what they did, and is no result."
    else:
        text = f"Drawn, here and below, are the runs that are in the means; left out: {', '.join(unusable)}."
    return f'<p class="soft">{escape(text)}</p>'


def _radio(shown: Sequence[Cell], said: bool) -> str:
    """``said``: how punctual the radio was stands beside the verdict already."""
    known, drawn = facts(shown), radio_figures(shown)
    if not known and not drawn:
        return ""
    cell, (run, _) = most_telling(shown)
    whose = f'<p class="soft">{escape(which(cell, run).strip(" ()"))}</p>' if cell.label else ""
    late = "" if said else _punctuality(run.punctuality() or {})
    return f"<h2>Radio and connectivity</h2>{whose}{definitions(known)}{late}{_drawn(drawn)}\n"


def _drawn(drawn: Sequence[Figure]) -> str:
    cards = "".join(
        f'<figure class="card" id="{figure.name}"><h3>{escape(figure.title)}</h3>'
        f'<div class="scroll">{figure.markup}</div></figure>\n'
        for figure in drawn
    )
    return f'<div class="figures">{cards}</div>'


def _runs(runs: Sequence[tuple[RunInput, Result]]) -> str:
    headings = [
        "run",
        "factors",
        "seed",
        "verdict",
        "goodput<br>tuples/s",
        "loss<br>%",
        "throughput<br>tuples/s",
        "latency p95<br>s",
    ]
    headings += ["records", "missing", "unreadable", "refused"]
    rows = []
    for run, result in runs:
        figures, log = result["metrics"], result["telemetry"]
        alone = {
            name: {"mean": figures[name], "sd": None}
            for name in ("goodput_fps", "loss_ratio", "throughput_fps", "latency_p95_s")
        }
        rows.append(
            [
                escape(run.run),
                escape(label_of(_factors(run))) or NOTHING,
                escape(str(run.manifest.get("seed"))),
                escape(str(run.verdict.get("verdict") or NOTHING)),
                number(alone["goodput_fps"], 1, 2),
                _loss(alone["loss_ratio"]),
                number(alone["throughput_fps"], 1, 2),
                number(alone["latency_p95_s"], 1, 3),
                *(str(log[name]) for name in ("records", "missing", "corrupt_lines", "refused")),
            ]
        )
    return f"<h2>Runs</h2>{table(headings, rows)}\n"


def _provenance(
    place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]
) -> str:
    manifest = runs[0][0].manifest
    known: dict[str, Any] = {
        "experiment": place.experiment,
        "run": place.id,
        "seeds": ", ".join(dict.fromkeys(str(run.manifest.get("seed")) for run, _ in runs)),
        "backend": manifest.get("backend"),
        "clock": manifest.get("clock"),
        "started": summary.get("started"),
        "finished": summary.get("finished"),
        **{f"{name} version": value for name, value in (manifest.get("versions") or {}).items()},
    }
    if len(runs) == 1:
        known |= {f"telemetry, {name}": count for name, count in runs[0][1]["telemetry"].items()}
    entries = {name.replace("_", " "): value for name, value in known.items() if value is not None}
    data = readable(place.spec)
    specification = "(no spec.yaml)" if data is None else data.decode(errors="replace")
    return (
        "<h2>How to reproduce</h2>"
        "<p>The file holds every parameter and seed of this run; in virtual time the result is the same.</p>"
        '<code class="card command">rove run spec.yaml</code>'
        f'<details class="card"><summary>spec.yaml</summary><pre>{escape(specification)}</pre></details>'
        f"<h2>Provenance</h2>{definitions(entries)}\n"
    )
