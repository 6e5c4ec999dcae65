"""How the analysis reads the plan of flows: who may say what, and where they begin and end."""

from node_agent.apps.flows.belief import scopes_of
from node_agent.apps.flows.model import Flow
from orchestrator.apps.flows.plan import flows_in
from orchestrator.results.contribution import Ends, PlanReader

Flows = tuple[Flow, ...]


def _ends(flows: Flows) -> Ends:
    sources, sinks = ([getattr(flow, end) for flow in flows] for end in ("source", "sink"))
    return Ends(tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(sinks)))


def _places(flows: Flows) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for flow in flows:
        places.setdefault(flow.source, []).append(f"{flow.name} (source)")
        places.setdefault(flow.sink, []).append(f"{flow.name} (sink)")
    return places


READER = PlanReader(flows_in, _ends, _places, scopes_of)
