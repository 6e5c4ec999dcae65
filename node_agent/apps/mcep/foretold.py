"""What an agent is given of a query's prediction, as plain bounded data."""

from math import inf
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import Quality
from node_agent.apps.mcep.prediction import MOST_EAGERNESS, MOST_PLACES, Prediction, Preference

MOST_ROUTE = 2000
"""Places of a known route."""
MOST_PROFILE = 100
_Share = Annotated[float, Meta(ge=0, le=1)]
_Amount = Annotated[float, Meta(ge=0, le=1e9)]
_Seconds = Annotated[float, Meta(ge=0, le=30 * 86400.0)]
_Metres = Annotated[float, Meta(ge=-1e7, le=1e7)]


class Foretold(Struct, frozen=True):
    """See ``Prediction``. Shares are (precision, recall); ``route`` has (seconds, x, y), and without it dead
    reckoning serves. Without ``budget`` or ``tolerance`` there is no limit."""

    eagerness: Annotated[int, Meta(ge=1, le=MOST_EAGERNESS)] = 1
    least: tuple[_Share, _Share] = (0.8, 0.8)
    alike: tuple[_Share, _Share] | None = None
    ahead: _Seconds | None = None
    seconds_per_event: _Seconds = 0.005
    profile: Annotated[tuple[tuple[_Amount, _Seconds], ...], Meta(max_length=MOST_PROFILE)] = ()
    route: Annotated[tuple[tuple[_Seconds, _Metres, _Metres], ...], Meta(max_length=MOST_ROUTE)] = ()
    places: Annotated[int, Meta(ge=1, le=MOST_PLACES)] = 1
    spread: Annotated[float, Meta(ge=0, le=1e7)] = 0.0
    budget: _Amount | None = None
    preference: Preference = "location"
    look_back: Annotated[float, Meta(gt=0, le=86400)] = 5.0
    tolerance: Annotated[float, Meta(ge=0, le=1e7)] | None = None


def prediction_of(given: Foretold) -> Prediction:
    return Prediction(
        given.eagerness,
        Quality(*given.least),
        None if given.alike is None else Quality(*given.alike),
        given.ahead,
        given.seconds_per_event,
        given.profile,
        tuple((Point(x, y), t) for t, x, y in given.route),
        given.places,
        given.spread,
        inf if given.budget is None else given.budget,
        given.preference,
        given.look_back,
        inf if given.tolerance is None else given.tolerance,
    )
