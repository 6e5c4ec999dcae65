"""How the analysis reads the plan of a detection: who may say what, and where events begin and end."""

from node_agent.apps.comet.telemetry import scopes_of
from node_agent.telemetry.belief import AppScopes
from orchestrator.apps.comet.plan import Recorded, recorded_in
from orchestrator.results.contribution import Ends, PlanReader


def _ends(recorded: Recorded) -> Ends:
    sources = tuple(node for node, config in recorded.configs.items() if config.events)
    return Ends(sources, tuple(dict.fromkeys(promise.sink for promise in recorded.promises)))


def _places(recorded: Recorded) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for node, config in recorded.configs.items():
        places.setdefault(node, []).extend(f"{each.name} (source)" for each in config.events)
    for promise in recorded.promises:
        places.setdefault(promise.sink, []).append(f"{promise.name} (sink)")
    return places


def _scopes(recorded: Recorded) -> AppScopes:
    return scopes_of(recorded.configs.values())


READER = PlanReader(recorded_in, _ends, _places, _scopes)
