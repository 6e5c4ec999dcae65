"""Writes the report: one self-contained HTML page for one run or for a sweep.

Sections are contributed and ordered by their place: results 100, faults 200, sections of applications 300,
figures 400, overhead 500, radio 600, clocks 700, then the runs and the provenance. If a run has several
applications, each has a part of its own with its results, sections and figures.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from orchestrator.analytics.blame import blaming
from orchestrator.analytics.parts import contributions_of, drawings, punctuality, shown_figures
from orchestrator.analytics.results_section import results, runs_table
from orchestrator.results import registry
from orchestrator.results.cells import cells
from orchestrator.results.contribution import Section
from orchestrator.results.inputs import RunInput
from orchestrator.results.markup import NOTHING, bullets, definitions, table
from orchestrator.results.views import Result, View, cells_shown
from orchestrator.runs.files import readable
from orchestrator.runs.manifest import CHECKOUT
from orchestrator.runs.refused import refused_text
from orchestrator.runs.run_directory import RunDirectory

# The page may load nothing from anywhere, whatever text got into it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

SPOKEN_VERDICTS = {
    "valid": "Valid: these numbers can be used.",
    "invalid": "Invalid: it ran, but do not use these numbers.",
    "failed": "Failed: it did not do what was asked.",
}

MOST_INTERVENTIONS = 8
MOST_LETTERS = 1000
"""Of a command line."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
RESULTS, FIGURES = 100, 400
"""Places of the sections that every report has."""


def render(place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]) -> str:
    """Returns the page. ``summary`` is the directory's summary.json; ``runs`` are its runs with their
    results.
    """
    style = files("orchestrator.analytics").joinpath("report.css").read_text()
    *shown, last = all_views(place, summary, runs)
    body = "".join(map(_app_part, shown)) + _sections(last)
    shown = shown or [last]
    parts = (
        _header(place, summary),
        _verdict(summary),
        _expectations([run for run, _ in runs]),
        body,
        runs_table(shown) if len(runs) > 1 else "",
        _provenance(place, summary, runs),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(place.experiment)} · Rove report</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )


def all_views(
    place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]
) -> list[View]:
    """Returns the view of the only application; of several, all of them, and last that of the whole run."""
    views = views_of(place, summary, runs)
    if len(views) == 1:
        return list(views.values())
    whole = View(place, summary, "", "", cells_shown(_whole(runs), ""), _groups(summary), _whole(runs), views)
    return [*views.values(), whole]


def views_of(
    place: RunDirectory, summary: Mapping[str, Any], runs: Sequence[tuple[RunInput, Result]]
) -> dict[str, View]:
    """Returns views by application; each result has the values of the run and those of the application."""
    kinds = {name: app.kind for run, _ in runs for name, app in run.apps.items()}
    views = {}
    for name, kind in kinds.items():
        of_app = [(run, _merged(result, name)) for run, result in runs if name in run.apps]
        groups = _groups(summary, name)
        views[name] = View(place, summary, name, kind, cells_shown(of_app, name), groups, of_app, {})
    return views


def _merged(result: Result, app: str) -> Result:
    part = result["apps"][app]
    return {name: {**result[name], **part[name]} for name in ("metrics", "series")}


def _whole(runs: Sequence[tuple[RunInput, Result]]) -> list[tuple[RunInput, Result]]:
    return [(run, {name: result[name] for name in ("metrics", "series")}) for run, result in runs]


def _groups(summary: Mapping[str, Any], app: str = "") -> list[Mapping[str, Any]]:
    """Returns the cells of the summary; for an application, with its own figures at the top."""
    found: Sequence[Mapping[str, Any]] = summary.get("cells") or cells([dict(summary)], [True])
    if not app:
        return list(found)
    return [_group_of(cell, cell["apps"][app]) for cell in found if app in cell["apps"]]


def _group_of(cell: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    group = {**cell, **figures, "metrics": {**cell["metrics"], **figures["metrics"]}}
    if "versus" in cell:
        group["versus"] = {**cell["versus"], "ratios": figures["ratios"]}
    return group


def _sections(view: View) -> str:
    """Returns the sections of a report about one application, or those about the whole run if there are
    several.
    """
    about = contributions_of(view) + (registry.about("") if view.is_only else [])
    ours = [Section(FIGURES, lambda shown: _figures(shown, "figures"))]
    ours += [Section(RESULTS, results)] if view.kind else []
    return _rendered(view, [*(section for each in about for section in each.sections), *ours])


def _rendered(view: View, sections: Sequence[Section]) -> str:
    parts = []
    for each in sorted(sections, key=lambda each: each.place):
        with blaming(f"the section of the report at place {each.place} cannot be written"):
            parts.append(each.render(view))
    return "".join(parts)


def _app_part(view: View) -> str:
    """Returns the part of one application. It prefixes ids, so that those of two applications differ."""
    ours = [Section(RESULTS, results), Section(FIGURES, lambda shown: _figures(shown, "figures", "radio"))]
    declared = [section for each in contributions_of(view) for section in each.sections]
    markup = _rendered(view, [*declared, *ours])
    prefix = escape(f"{view.app}-")
    for pattern in (r'\bid="', r'href="#', r"url\(#"):
        markup = re.sub(pattern, lambda found: f"{found[0]}{prefix}", markup)
    title = f"{escape(view.app)} <small>{escape(view.kind)}</small>"
    return f'<section class="application" id="app-{escape(view.app)}"><h2>{title}</h2>{markup}</section>\n'


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
    notes = "".join(f'<p class="note">{escape(str(note))}</p>' for note in summary.get("notes") or [])
    radio = punctuality(summary.get("radio") or {})
    refused = refused_text(summary.get("refused") or [], most=8)
    note = f'<p id="refused">Refused: {escape(refused)}.</p>' if refused else ""
    if done := summary.get("interventions"):
        what = escape("; ".join(str(each) for each in done[:MOST_INTERVENTIONS]))
        more = f" and {len(done) - MOST_INTERVENTIONS} more" if len(done) > MOST_INTERVENTIONS else ""
        note += f'<p id="interventions">Changed by hand, which its file does not repeat: {what}{more}.</p>'
    said = f"<strong>{escape(text)}</strong>{reasons}{notes}{note}{radio}"
    return f'<section class="verdict {kind}">{said}</section>\n'


def _expectations(runs: Sequence[RunInput]) -> str:
    """Returns what was expected of the runs, and in which of them it holds; nothing where none was judged."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        for each in run.verdict.get("expectations") or ():
            found.setdefault(str(each.get("expect")), []).append(each)
    if not found:
        return ""
    rows = []
    for expected, judged in found.items():
        values = [each["value"] for each in judged if isinstance(each.get("value"), int | float)]
        got = (
            NOTHING
            if not values
            else " … ".join(f"{v:.4g}" for v in dict.fromkeys((min(values), max(values))))
        )
        held = sum(each.get("holds") is True for each in judged)
        holds = f"in {held} of {len(judged)} runs" if len(judged) > 1 else "yes" if held else "no"
        text = escape(holds)
        rows.append(
            [escape(expected), got, text if held == len(judged) else f'<strong class="bad">{text}</strong>']
        )
    return f'<h2 id="expectations">Expectations</h2>{table(["expected", "got", "holds"], rows)}\n'


def _in_part(summary: Mapping[str, Any]) -> str | None:
    """Describes a sweep with some usable runs: its verdict must not be taken for theirs."""
    groups: Sequence[Mapping[str, Any]] = summary.get("cells") or ()
    used = sum(cell["n"] for cell in groups)
    left_out = sum(len(cell["excluded"]) for cell in groups)
    if not used or not left_out:
        return None
    whole = str(summary.get("verdict") or "unjudged").capitalize()
    rest = "the other one is" if left_out == 1 else f"the other {left_out} are"
    return f"{whole} as a whole: {used} of {used + left_out} runs can be used, {rest} not in the means."


def _figures(view: View, *sections: str) -> str:
    drawn = drawings(view, *sections)
    if drawn:
        return f"<h2>Figures</h2>{_whose(view.runs)}{shown_figures(drawn)}\n"
    if not view.kind:
        return ""
    return '<h2>Figures</h2><p class="soft">There is nothing to draw: the runs left no records.</p>\n'


def _whose(runs: Sequence[tuple[RunInput, Result]]) -> str:
    unusable = [run.run for run, _ in runs if not run.is_usable]
    if len(runs) == 1 or not unusable:
        return ""
    if len(unusable) == len(runs):
        text = "None of the runs is valid: what is drawn shows what they did, and is no result."
    else:
        text = f"Drawn, here and below, are the runs that are in the means; left out: {', '.join(unusable)}."
    return f'<p class="soft">{escape(text)}</p>'


def _commit(checkout: Any) -> str | None:
    if not isinstance(checkout, Mapping) or not isinstance(checkout.get("commit"), str):
        return None
    dirty = checkout.get("dirty")
    changed = "" if dirty is False else ", with changes" if dirty is True else ", perhaps with changes"
    return f"{checkout['commit'][:64]}{changed}"


def _command(words: Any) -> str | None:
    """Returns the command line that started the run, if the manifest has one."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return shlex.join(words)[:MOST_LETTERS] or None


def _again(place: RunDirectory, checkout: Any) -> str:
    """Returns the command that runs the same again: with the version of Rove, if it is a known commit."""
    spec = Path(place.path.parent.parent.name, place.experiment, place.id, place.spec.name)
    run = shlex.join(["rove", "run", str(spec)])
    commit = checkout.get("commit") if isinstance(checkout, Mapping) else None
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        return run
    return f"git checkout {commit} && {run}"


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
        "commit": _commit(manifest.get(CHECKOUT)),
        "command": _command(manifest.get("command")),
    }
    if len(runs) == 1:
        known |= {f"telemetry, {name}": count for name, count in (summary.get("telemetry") or {}).items()}
    entries = {name.replace("_", " "): value for name, value in known.items() if value is not None}
    data = readable(place.spec)
    specification = "(no spec.yaml)" if data is None else data.decode(errors="replace")
    return (
        "<h2>How to reproduce</h2>"
        "<p>The file holds every parameter and seed of this run; in virtual time the result is the same.</p>"
        f'<code class="card command">{escape(_again(place, manifest.get(CHECKOUT)))}</code>'
        f'<details class="card"><summary>spec.yaml</summary><pre>{escape(specification)}</pre></details>'
        f"<h2>Provenance</h2>{definitions(entries)}\n"
    )
