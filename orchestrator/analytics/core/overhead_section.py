"""The report's section on the traffic of routing, by kind of message. Traffic that was not counted is shown
as unknown, not as 0.
"""

from collections.abc import Iterable, Mapping
from html import escape

from node_agent.linkstate.overhead import AGENTS_OWN
from orchestrator.errors import BadInput
from orchestrator.results.cells import spread
from orchestrator.results.inputs import RunInput
from orchestrator.results.markup import number, table
from orchestrator.results.views import Result, View
from orchestrator.runs.manifest import ROUTING
from orchestrator.spec.routing import DEFAULT_PROTOCOL
from orchestrator.spec.yaml_source import read_document

NOTE = (
    "Bit/s that a node put on the air, the mean over nodes; in brackets what of it was forwarded for others. "
    "“packet” is what all packets cost besides their messages: headers of OLSR, UDP and IP; “costs” is what "
    "agents tell each other for switching, with headers. A dash: the protocol does not tell what it sends."
)

Rates = Mapping[str, Mapping[str, float]]


def overhead(view: View) -> str:
    """Returns the section; empty if nothing was counted."""
    shown = view.cells
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
        counted = [_counted(run, result) for run, result in cell.runs]
        known = [rates for rates in counted if rates is not None]
        by_kind = [_rate(rates.get(name, {}) for rates in known) for name in messages]
        totals = spread([sum(rate for kind in rates.values() for rate in kind.values()) for rates in known])
        rows.append([escape(cell.label or str(cell.runs[0][0].run)), *by_kind, number(totals, 1, 0)])
    title = "Control overhead by message kind"
    return f'<h2 id="overhead">{title}</h2>{table(headings, rows)}<p class="soft">{escape(NOTE)}</p>\n'


def _counted(run: RunInput, result: Result) -> Rates | None:
    """Returns the rates; None if they are unknown. If the daemon counts its messages, or there is none,
    missing kinds are 0.
    """
    rates: Rates = result["metrics"]["routing_overhead"]
    return rates if any(name != AGENTS_OWN for name in rates) or _is_silent(run) else None


def _is_silent(run: RunInput) -> bool:
    return _protocol(run) == "ground_truth"


def _protocol(run: RunInput) -> object:
    """Returns the protocol from the manifest, or for old runs from spec.yaml.
    Runs no code that these name.
    """
    if ROUTING in run.manifest:
        return run.manifest[ROUTING]
    try:
        document = read_document(run.directory.spec).value
    except BadInput:
        return None
    routing = document.get("routing", DEFAULT_PROTOCOL) if isinstance(document, dict) else None
    return routing.get("protocol", DEFAULT_PROTOCOL) if isinstance(routing, dict) else routing


def _rate(found: Iterable[Mapping[str, float]]) -> str:
    rates = list(found)
    forwarded = [rate.get("forwarded_bps", 0.0) for rate in rates]
    both = spread([rate.get("sent_bps", 0.0) + other for rate, other in zip(rates, forwarded, strict=True)])
    text = number({**both, "sd": None}, 1, 0)
    if not any(forwarded):
        return text
    return f"{text} <small>({number({**spread(forwarded), 'sd': None}, 1, 0)})</small>"
