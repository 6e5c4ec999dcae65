"""The report's section on the clocks of nodes: how far they were from the orchestrator's, and how exactly
that is known.
"""

from collections.abc import Iterable
from html import escape

from orchestrator.clocks.book import ClockBook, NodeClock, read_book
from orchestrator.results.inputs import RunInput
from orchestrator.results.markup import NOTHING, table
from orchestrator.results.views import View, most_telling, which

NOTE = (
    "All times are corrected by these offsets to the orchestrator's clock, births of tuples by the offset of "
    "their source's node. The uncertainty is the largest of the run: half a round trip, and what the clock "
    "may have drifted between two measurements."
)


def clocks(view: View) -> str:
    """Returns the section; empty if all nodes use the orchestrator's clock.
    A sweep shows one run's clocks.
    """
    cell, (run, _) = most_telling(view.cells)
    book = read_book(run.manifest.get("clocks"))
    if not book.nodes:
        return ""
    headings = ["node", "measured<br>times", "offset at first<br>ms", "drift<br>ppm", "uncertainty<br>ms"]
    rows = [[escape(node), *_known(book.of(node))] for node in book.nodes]
    whose = f'<p class="soft">{escape(which(cell, run).strip(" ()"))}</p>' if cell.label else ""
    note = f'<p class="soft">{escape(f"{NOTE}{_of_latencies(run, book)}")}</p>'
    return f'<h2 id="clocks">Clocks</h2>{whose}{table(headings, rows)}{note}\n'


def _known(clock: NodeClock) -> list[str]:
    drift, worst_ns = clock.drift_ppm(), clock.worst_ns()
    return [
        str(len(clock.samples)),
        f"{clock.samples[0].offset_ns / 1e6:+,.3f}" if clock.samples else NOTHING,
        NOTHING if drift is None else f"{drift:+.1f}",
        NOTHING if worst_ns is None else f"{worst_ns / 1e6:.3f}",
    ]


def _of_latencies(run: RunInput, book: ClockBook) -> str:
    """Says how exactly an application's latencies are known; with several applications, for the one with the
    worst clocks.
    """
    found = []
    for app in run.apps.values():
        sides = [_worst_ns(book, nodes) for nodes in app.ends]
        known = [worst_ns for worst_ns in sides if worst_ns is not None]
        if len(known) < len(sides):
            return ""
        found.append(sum(known))
    return f" Latencies are known to within {max(found) / 1e6:.3f} ms." if found else ""


def _worst_ns(book: ClockBook, nodes: Iterable[str]) -> int | None:
    found = [book.of(node).worst_ns() for node in nodes]
    known = [worst_ns for worst_ns in found if worst_ns is not None]
    return max(known) if known and len(known) == len(found) else None
