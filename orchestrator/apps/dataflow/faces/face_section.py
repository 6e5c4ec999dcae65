"""The report's section on faces: how many were found and named, and some of the pictures."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from node_agent.apps.dataflow.faces.params import folder_of
from orchestrator.apps.dataflow.faces.outcomes import CONFUSED, FALSE_DETECTION, MISSED
from orchestrator.results.cells import spread
from orchestrator.results.markup import NOTHING, number, table
from orchestrator.results.views import Cell, View, most_telling, which
from orchestrator.runs.run_directory import RunDirectory

MOST_PICTURES = 6
MOST_BYTES = 600_000
"""Limit of all pictures together, so that a report can be mailed."""

MOST_PERSONS = 12

NOTE = "Of the frames that arrived. Found: all that was taken for a face; named: of these, who got a name."
JUDGED_NOTE = (
    "Against what was really shown, detected: faces found. Rank-1: of the known persons found, those that got"
    " their own name within the threshold; missed: called unknown, confused: called somebody else. "
    "False accepts: of the strangers found, those that got a name. False detections: found where no face is."
)
UNJUDGED_NOTE = "There is no ground truth to judge by: it is not known who was really in these frames."


JUDGED = ["faces<br>shown", "detected<br>%", "rank-1<br>%", "missed", "confused"]
JUDGED += ["false<br>accepts %", "false<br>detections"]


def faces(view: View) -> str:
    """Returns the section; empty if no query reported faces."""
    of_faces = [cell for cell in view.cells if any("faces" in result["metrics"] for _, result in cell.runs)]
    if not of_faces:
        return ""
    headings = ["" if len(of_faces) > 1 else "run", "frames/s", "kbit/s", "latency p95<br>s"]
    headings += ["faces<br>found", "named"]
    judged = any(map(_is_judged, of_faces))
    if judged:
        headings += JUDGED
    rows = [_row(cell, judged) for cell in of_faces]
    notes = [NOTE, *([JUDGED_NOTE] if judged else []), *(_unjudged(of_faces))]
    return (
        f'<h2 id="faces">Faces</h2>{table(headings, rows)}<p class="soft">{escape(" ".join(notes))}</p>'
        f"{_persons(of_faces)}{_old_galleries(of_faces)}{_pictures(of_faces, view.app)}\n"
    )


def _is_judged(cell: Cell) -> bool:
    return any(result["metrics"].get("faces", {}).get("ground_truth") for _, result in cell.runs)


def _unjudged(shown: Sequence[Cell]) -> list[str]:
    without = [cell for cell in shown if not _is_judged(cell)]
    if not without:
        return []
    if len(without) == len(shown):
        return [UNJUDGED_NOTE]
    return [f"{', '.join(map(_label, without))}: {UNJUDGED_NOTE[0].lower()}{UNJUDGED_NOTE[1:]}"]


def _label(cell: Cell) -> str:
    return cell.label or str(cell.runs[0][0].run)


def _persons(shown: Sequence[Cell]) -> str:
    """Returns how often each person was seen, in the same run as the pictures."""
    cell, (run, result) = most_telling(shown)
    found = result["metrics"].get("faces", {})
    counts = list(found.get("persons", {}).items())
    if not counts:
        return ""
    listed = [f"{person} {count}" for person, count in counts[:MOST_PERSONS]]
    if rest := found["named"] - sum(count for _, count in counts[:MOST_PERSONS]):
        listed.append(f"others {rest}")
    title = f"Faces by the name they got{which(cell, run)}"
    return f"<p>{escape(title)}: {escape(', '.join(listed))}.</p>"


def _row(cell: Cell, judged: bool) -> list[str]:
    """Returns a row. ``judged``: with the columns that need ground truth; they are empty if there is none."""

    def of(name: str) -> dict[str, Any]:
        return spread([result["metrics"].get(name) for _, result in cell.runs])

    counts = [result["metrics"].get("faces", {}) for _, result in cell.runs]

    def outcome(name: str) -> str:
        return number(spread([found.get("outcomes", {}).get(name, 0) for found in counts]), 1, 0)

    def count(name: str) -> str:
        return number(spread([found.get(name) for found in counts]), 1, 0)

    row = [
        escape(_label(cell)),
        number(of("goodput_fps"), 1, 2),
        number(of("goodput_kbps"), 1, 0),
        number(of("latency_p95_s"), 1, 3),
        count("found"),
        count("named"),
    ]
    if not judged:
        return row
    if not _is_judged(cell):
        return row + [NOTHING] * len(JUDGED)
    return [
        *row,
        count("shown"),
        number(of("detection_rate"), 100, 1),
        number(of("rank1"), 100, 1),
        outcome(MISSED),
        outcome(CONFUSED),
        number(of("false_accept_rate"), 100, 1),
        outcome(FALSE_DETECTION),
    ]


def _old_galleries(shown: Sequence[Cell]) -> str:
    old = {
        run.run: unplanned
        for cell in shown
        for run, result in cell.runs
        if (unplanned := result["metrics"].get("faces", {}).get("unplanned_galleries"))
    }
    return "".join(
        f'<p><strong class="bad">{escape(run)}: faces were named by galleries that are not of its plan: '
        f"{escape(', '.join(versions))}.</strong></p>"
        for run, versions in old.items()
    )


def _pictures(shown: Sequence[Cell], app: str) -> str:
    cell, (run, _) = most_telling(shown)
    chosen = chosen_pictures(run.directory, app)
    if not chosen:
        return ""
    figures = "".join(
        f'<figure class="card"><img alt="frame {path.stem.lstrip("0")}, annotated" '
        f'src="data:image/jpeg;base64,{base64.b64encode(content).decode()}"></figure>\n'
        for path, content in chosen
    )
    title = f"Frames at the sink{which(cell, run)}"
    return f'<h3>{escape(title)}</h3><div class="pictures">{figures}</div>'


def chosen_pictures(directory: RunDirectory, app: str) -> list[tuple[Path, bytes]]:
    """Chooses pictures, evenly spread from first to last, as many as there is room for."""
    own = folder_of(app, "")
    kept = sorted(
        path
        for path in directory.nodes.glob("*/frames/*/*.jpg")
        if path.stem.isdigit() and path.parent.name.rpartition(".")[0] == own.rpartition(".")[0]
    )
    count = min(len(kept), MOST_PICTURES)
    places = [round(n * (len(kept) - 1) / max(count - 1, 1)) for n in range(count)]
    chosen: list[tuple[Path, bytes]] = []
    room = MOST_BYTES
    for path in (kept[place] for place in places):
        if path.stat().st_size <= room:
            content = path.read_bytes()
            room -= len(content)
            chosen.append((path, content))
    return chosen
