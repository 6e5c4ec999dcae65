"""The report's section on the faults of a run, listed in both clocks."""

from html import escape

from orchestrator.results.faults import described, faults_of, since
from orchestrator.results.markup import table
from orchestrator.results.views import View, most_telling, which

NOTE = (
    "“Since start” is the clock of the figures and of rove explain --at; “measured” counts from the "
    "beginning of the measurement, as faults.at does. Figures over time are shaded while a fault lasted."
)


def faults(view: View) -> str:
    """Returns the section; empty if there were no faults. For a sweep, shows those of the run in the
    single-run figures.
    """
    cell, (run, result) = most_telling(view.cells)
    found = faults_of(result)
    if not found:
        return ""
    measured_from = result["series"]["window_s"][0]
    rows = [
        [f"{number}: {escape(text)}", *since(fault, 0.0), *since(fault, measured_from)]
        for number, (fault, text) in enumerate(zip(found, described(run, found), strict=True), start=1)
    ]
    headings = ["fault", "since start<br>from, s", "until, s", "measured<br>from, s", "until, s"]
    whose = f'<p class="soft">{escape(which(cell, run).strip(" ()"))}</p>' if cell.label else ""
    note = f'<p class="soft">{escape(NOTE)}</p>'
    return f'<h2 id="faults">Faults</h2>{whose}{table(headings, rows)}{note}\n'
