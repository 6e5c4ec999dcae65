"""Parts of the report that several sections use."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.results import registry
from orchestrator.results.contribution import Contribution
from orchestrator.results.svg import Figure
from orchestrator.results.views import View


def contributions_of(view: View) -> list[Contribution]:
    """Returns the contributions about the application in view, or about the whole run."""
    if not view.kind:
        return registry.about("")
    apps = [run.apps[view.app] for run, _ in view.runs]
    return [each for each in registry.about(view.kind) if any(map(each.applies, apps))]


def drawings(view: View, *sections: str) -> list[Figure]:
    """Returns the figures that are contributed to ``sections`` of the report and have something to show.

    A report of one application includes those of the whole run.
    """
    about = contributions_of(view) + (registry.about("") if view.is_only else [])
    declared = [drawing for each in about for drawing in each.drawings if drawing.section in sections]
    found = (drawing.draw(view.cells) for drawing in sorted(declared, key=lambda each: each.place))
    return [figure for figure in found if figure is not None]


def shown_figures(drawn: Sequence[Figure]) -> str:
    cards = "".join(
        f'<figure class="card" id="{figure.name}"><h3>{escape(figure.title)}</h3>'
        f'<div class="scroll">{figure.markup}</div></figure>\n'
        for figure in drawn
    )
    return f'<div class="figures">{cards}</div>'


def punctuality(radio: Mapping[str, Any]) -> str:
    """Says how late the radio was, also for valid runs, so that one sees how close to invalid they were."""
    if not radio:
        return ""
    return (
        f'<p class="soft">Radio: {radio["deliveries"]:,} deliveries, '
        f"{100 * radio['late_ratio']:.2f} % more than 1 ms late, p99 {radio['p99_us'] / 1e3:.2f} ms, "
        f"nodes moved unnoticed for at most {radio['channel_lag_max_ms']:.0f} ms.</p>"
    )
