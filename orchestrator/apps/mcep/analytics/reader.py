"""How the analysis reads the plan of moving interests: who may say what, where events begin and end."""

from orchestrator.apps.mcep.plan import Recorded, recorded_in, scopes
from orchestrator.results.contribution import Ends, PlanReader


def _ends(recorded: Recorded) -> Ends:
    settings = recorded.settings
    return Ends(settings.clients, tuple(dict.fromkeys(each.focal for each in settings.queries)))


def _places(recorded: Recorded) -> dict[str, list[str]]:
    settings = recorded.settings
    places = {name: ["broker"] for name in settings.areas}
    places |= {name: ["client"] for name in settings.clients}
    for query in settings.queries:
        places[query.focal].append(f"{query.name} (focal)")
        places[query.home].append(f"{query.name} (home)")
    return places


READER = PlanReader(recorded_in, _ends, _places, scopes)
