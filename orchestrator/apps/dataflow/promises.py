"""Says in words what each reliability of a query promises, in `rove plan` and in the report."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.results.views import View

PROMISES: Mapping[str, str] = {
    "best_effort": "best_effort: tuples may be lost, none is delivered twice",
    "at_least_once": "at_least_once: no tuple is lost, some may be delivered twice",
    "exactly_once": "exactly_once: no tuple is lost, none is delivered twice",
}


def reliability_section(view: "View") -> str:
    """Returns the report's line on what the query promised; all of them if a sweep varies it."""
    plans = (run.apps[view.app].plan for run, _ in view.runs)
    promised = dict.fromkeys(PROMISES[plan.query.reliability] for plan in plans)
    return f'<p class="soft" id="reliability">Reliability: {escape("; ".join(promised))}.</p>\n'
