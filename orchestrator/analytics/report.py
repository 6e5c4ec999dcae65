"""The report: one HTML page that needs nothing but itself, for one run or for a sweep."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from orchestrator.analytics.cells import SEED, cells, spread
from orchestrator.analytics.figures import all_figures, radio_figures
from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.radio_view import facts
from orchestrator.analytics.svg import Figure
from orchestrator.analytics.views import Cell, Result, label_of, most_telling, which
from orchestrator.lifecycle.files import read_json
from orchestrator.lifecycle.run_directory import RunDirectory

# Nothing may be loaded from anywhere, whatever text found its way into the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

MEANINGS = {
    "throughput": "arrivals at the sink per second, between the first and the last one after warm-up",
    "goodput": "the same over the whole measured window, outages included",
    "latency": "arrival at the sink minus capture at the source",
    "loss": "share of tuples that never arrived; those still under way at the end do not count",
    "switches": "how often a replica that carried tuples went over to another replica downstream",
    "connected": "share of time in which a path between source and sink existed at all (ground truth)",
}
SPOKEN_VERDICTS = {
    "valid": "Valid: these numbers can be used.",
    "invalid": "Invalid: it ran, but do not use these numbers.",
    "failed": "Failed: it did not do what was asked.",
}
NOTHING = "–"


def render(place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]) -> str:
    """``summary`` is the directory's summary.json; ``runs`` are its runs with what was computed for each."""
    shown = _cells_of(runs)
    style = files("orchestrator.analytics").joinpath("report.css").read_text()
    sections = (
        _header(place, summary),
        _verdict(summary),
        _results(summary, runs),
        _figures(all_figures(shown)),
        _overhead(shown),
        _radio(shown, said="radio" in summary),
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
    """Unusable runs are drawn only where a cell has no others."""
    groups: dict[str, list[tuple[RunInput, Result]]] = {}
    for run, result in runs:
        groups.setdefault(label_of(_factors(run)), []).append((run, result))
    return [
        Cell(label, _factors(group[0][0]), tuple([pair for pair in group if pair[0].is_usable] or group))
        for label, group in groups.items()
    ]


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
    reasons = _list(summary.get("reasons") or [])
    radio = _punctuality(summary.get("radio") or {})
    return f'<section class="verdict {kind}"><strong>{escape(text)}</strong>{reasons}{radio}</section>\n'


def _punctuality(radio: Mapping[str, Any]) -> str:
    """Said of valid runs, too: how far from invalid they were."""
    if not radio:
        return ""
    return (
        f'<p class="soft">Radio: {radio["deliveries"]:,} deliveries, '
        f"{100 * radio['late_ratio']:.2f} % more than 1 ms late, p99 {radio['p99_us'] / 1e3:.2f} ms, "
        f"nodes moved unnoticed for at most {radio['channel_lag_max_ms']:.0f} ms.</p>"
    )


def _list(items: Iterable[Any], limit: int = 12) -> str:
    texts = [str(item) for item in items]
    if len(texts) > limit:
        texts = [*texts[:limit], f"… and {len(texts) - limit} more"]
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def _results(summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]) -> str:
    groups: Sequence[Mapping[str, Any]] = summary.get("cells") or cells([dict(summary)], [True])
    compared = any("versus" in cell for cell in groups)
    counts = {cell["n"] for cell in groups}
    several = max(counts) > 1
    headings = ["" if len(groups) > 1 else "run", "throughput<br>tuples/s", "goodput<br>tuples/s", "kbit/s"]
    headings += ["latency p50<br>s", "latency p95<br>s", "loss<br>%", "switches", "connected<br>%"]
    headings += ["throughput<br>vs fewest k", "p95<br>vs fewest k"] if compared else []
    headings += ["runs"] if len(counts) > 1 else []
    rows = []
    for cell in groups:
        figures = cell["metrics"]
        label = label_of(cell["factors"]) or str(summary["run"])
        row = [
            escape(label),
            _figure(figures["throughput_fps"], 1, 2),
            _figure(figures["goodput_fps"], 1, 2),
            _figure(figures["throughput_kbps"], 1, 0),
            _figure(figures["latency_p50_s"], 1, 3),
            _figure(figures["latency_p95_s"], 1, 3),
            _figure(figures["loss_ratio"], 100, 1),
            _figure(figures["switches"], 1, 0),
            _figure(figures["source_sink_connected_ratio"], 100, 1),
        ]
        if compared:
            ratios = cell.get("versus", {}).get("ratios", {})
            row += [_figure(ratios.get(name), 1, 2, "×") for name in ("throughput_fps", "latency_p95_s")]
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
    spoken = "".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
    return f"<h2>Results</h2>{_table(headings, rows)}{spoken}{_meanings()}\n"


def _meanings() -> str:
    meanings = _definitions(MEANINGS)
    return f'<details class="card"><summary>What the columns mean</summary>{meanings}</details>'


def _figure(spread: Mapping[str, Any] | None, factor: float, digits: int, unit: str = "") -> str:
    if not spread or spread["mean"] is None:
        return NOTHING
    text = f"{spread['mean'] * factor:.{digits}f}{unit}"
    deviation = spread["sd"]
    return text if deviation is None else f"{text} <small>± {deviation * factor:.{digits}f}</small>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Headings and cells are markup: what comes from outside must have been escaped."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="card scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _figures(drawn: Sequence[Figure]) -> str:
    if not drawn:
        return '<h2>Figures</h2><p class="soft">There is nothing to draw: the runs left no records.</p>\n'
    return f"<h2>Figures</h2>{_drawn(drawn)}\n"


def _overhead(shown: Sequence[Cell]) -> str:
    """What routing daemons put on the air; nothing where there were none."""
    messages = dict.fromkeys(
        message
        for cell in shown
        for _, result in cell.runs
        for message in result["metrics"]["routing_overhead"]
    )
    if not messages:
        return ""
    headings = ["" if len(shown) > 1 else "run", *map(escape, messages), "all"]
    rows = []
    for cell in shown:
        found = [result["metrics"] for _, result in cell.runs]
        rates = [_rate(figures["routing_overhead"].get(name, {}) for figures in found) for name in messages]
        total = _figure(spread([figures["routing_overhead_bps"] for figures in found]), 1, 0)
        rows.append([escape(cell.label or str(cell.runs[0][0].run)), *rates, total])
    note = (
        "Bit/s that a node put on the air, the mean over nodes; in brackets what of it was forwarded for "
        "others. “packet” is what all packets cost besides their messages: headers of OLSR, UDP and IP."
    )
    title = "Control overhead by message kind"
    return f'<h2 id="overhead">{title}</h2>{_table(headings, rows)}<p class="soft">{escape(note)}</p>\n'


def _rate(found: Iterable[Mapping[str, float]]) -> str:
    rates = list(found)
    forwarded = [rate.get("forwarded_bps", 0.0) for rate in rates]
    both = spread([rate.get("sent_bps", 0.0) + other for rate, other in zip(rates, forwarded, strict=True)])
    text = _figure({**both, "sd": None}, 1, 0)
    return (
        f"{text} <small>({_figure({**spread(forwarded), 'sd': None}, 1, 0)})</small>"
        if any(forwarded)
        else text
    )


def _radio(shown: Sequence[Cell], said: bool) -> str:
    """``said``: how punctual the radio was stands beside the verdict already."""
    known, drawn = facts(shown), radio_figures(shown)
    if not known and not drawn:
        return ""
    cell, (run, _) = most_telling(shown)
    whose = f'<p class="soft">{escape(which(cell, run).strip(" ()"))}</p>' if cell.label else ""
    lateness = None if said else read_json(run.directory.radio / "lateness.json")
    late = _punctuality(lateness) if isinstance(lateness, dict) else ""
    return f"<h2>Radio and connectivity</h2>{whose}{_definitions(known)}{late}{_drawn(drawn)}\n"


def _definitions(entries: Mapping[str, Any]) -> str:
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in entries.items())
    return f"<dl>{''.join(pairs)}</dl>"


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
        "throughput<br>tuples/s",
        "latency p95<br>s",
        "loss<br>%",
    ]
    headings += ["records", "missing", "unreadable"]
    rows = []
    for run, result in runs:
        figures, log = result["metrics"], result["telemetry"]
        alone = {name: {"mean": figures[name], "sd": None} for name in ("latency_p95_s", "loss_ratio")}
        rows.append(
            [
                escape(run.run),
                escape(label_of(_factors(run))) or NOTHING,
                escape(str(run.manifest.get("seed"))),
                escape(str(run.verdict.get("verdict") or NOTHING)),
                f"{figures['throughput_fps']:.2f}",
                _figure(alone["latency_p95_s"], 1, 3),
                _figure(alone["loss_ratio"], 100, 1),
                *(str(log[name]) for name in ("records", "missing", "corrupt_lines")),
            ]
        )
    return f"<h2>Runs</h2>{_table(headings, rows)}\n"


def _provenance(
    place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]
) -> str:
    manifest = runs[0][0].manifest
    known: dict[str, Any] = {
        "experiment": place.experiment,
        "run": place.id,
        "seeds": ", ".join(dict.fromkeys(str(run.manifest.get("seed")) for run, _ in runs)),
        "clock": manifest.get("clock"),
        "started": summary.get("started"),
        "finished": summary.get("finished"),
        **{f"{name} version": value for name, value in (manifest.get("versions") or {}).items()},
    }
    if len(runs) == 1:
        known |= {f"telemetry, {name}": count for name, count in runs[0][1]["telemetry"].items()}
    entries = {name.replace("_", " "): value for name, value in known.items() if value is not None}
    specification = place.spec.read_text(errors="replace") if place.spec.is_file() else "(no spec.yaml)"
    return (
        "<h2>How to reproduce</h2>"
        "<p>The file holds every parameter and seed of this run; in virtual time the result is the same.</p>"
        '<code class="card command">rove run spec.yaml</code>'
        f'<details class="card"><summary>spec.yaml</summary><pre>{escape(specification)}</pre></details>'
        f"<h2>Provenance</h2>{_definitions(entries)}\n"
    )
