"""What an experiment file says of prediction: graphs that are prepared where the object will be.

predict: {ahead: 2s, eagerness: 2, route: known}
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from node_agent.apps.mcep.foretold import MOST_PROFILE, MOST_ROUTE, Foretold
from node_agent.apps.mcep.prediction import MOST_EAGERNESS, MOST_PLACES, Preference
from orchestrator.model.trace import Sample
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, Unusable
from orchestrator.spec.units import DURATION, SHARE, Duration, Length, PositiveDuration, PositiveLength

Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class SharesSection(Section):
    """How well one region stands for another, counted in events."""

    precision: Annotated[float, SHARE] = Field(default=0.8, examples=["80%"])
    recall: Annotated[float, SHARE] = Field(default=0.8, examples=["80%"])

    @property
    def pair(self) -> tuple[float, float]:
        return self.precision, self.recall


class PredictSection(Section):
    """Graphs begin where the object will be before it is there, so that history is ready at the switch."""

    eagerness: Annotated[int, Field(strict=True, ge=1, le=MOST_EAGERNESS)] = Field(
        default=1, description="For how many switches ahead"
    )
    ahead: Duration | None = Field(
        default=None,
        description="So long before a switch its graphs begin; if not given, as long as history takes",
    )
    per_event: Annotated[float, DURATION.within(le=3600)] = Field(
        default=0.005, description="How long an event takes to process, to know how long history takes"
    )
    profile: tuple[tuple[Amount, Duration], ...] = Field(
        default=(),
        max_length=MOST_PROFILE,
        description="Measured: events a second times per_event, and how long history took then",
        examples=[[[0.1, "500 ms"], [0.5, "4s"]]],
    )
    route: Literal["known"] | tuple[tuple[Duration, Length, Length], ...] | None = Field(
        default=None,
        description="Times and places; known: those of the drive; if not given, it goes on as it went",
        examples=["known", [["0s", "0 m", "0 m"], ["60s", "500 m", "0 m"]]],
    )
    places: Annotated[int, Field(strict=True, ge=1, le=MOST_PLACES)] = Field(
        default=1, description="How many are considered for each switch"
    )
    spread: Length = Field(default=0.0, description="How far these are from the expected one")
    budget: Amount | None = Field(
        default=None,
        description="Events a second that prepared graphs may cost together; with several brokers, graphs",
    )
    prefer: Preference = Field(
        default="location", description="The nearest, those with the most new events, or the cheapest first"
    )
    least: SharesSection = Field(default=SharesSection(), description="What a prepared graph must reach")
    alike: SharesSection | None = Field(
        default=None, description="From here on one place stands for another; if not given, least"
    )
    look_back: PositiveDuration = Field(default=5.0, description="The events of so long before are counted")
    tolerance: PositiveLength | None = Field(
        default=None, description="A graph that is farther off than this is given up; if not given, none is"
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> "PredictSection":
        findings = []
        if isinstance(self.route, tuple):
            if not self.route or len(self.route) > MOST_ROUTE:
                findings.append(Finding(("route",), f"a route has 1 to {MOST_ROUTE} places"))
            for number, (before, after) in enumerate(pairwise(self.route)):
                if after[0] <= before[0]:
                    text = f"{after[0]:g} s is not after {before[0]:g} s: the times of a route must grow"
                    findings.append(Finding(("route", number + 1), text))
                    break
        if self.places > 1 and not self.spread:
            text = f"{self.places} places are considered, and none of them is farther than 0 m away"
            findings.append(Finding(("spread",), text, "spread: 50 m"))
        if findings:
            raise Unusable(*findings)
        return self

    def foretold(self, drive: Sequence[Sample]) -> Foretold:
        """Returns what agents are given; ``drive`` is that of the focal object."""
        return Foretold(
            self.eagerness,
            self.least.pair,
            None if self.alike is None else self.alike.pair,
            self.ahead,
            self.per_event,
            self.profile,
            _known(drive) if self.route == "known" else self.route or (),
            self.places,
            self.spread,
            self.budget,
            self.prefer,
            self.look_back,
            self.tolerance,
        )


def _known(drive: Sequence[Sample]) -> tuple[tuple[float, float, float], ...]:
    """Returns a drive as a route, of at most as many places as a route may have."""
    every = -(-len(drive) // MOST_ROUTE)
    return tuple((each.t, round(each.x, 2), round(each.y, 2)) for each in drive[::every])


def foretold_text(given: Foretold) -> str:
    """Prediction in a few words."""
    by = "on its known route" if given.route else "as it goes on"
    when = "as long before as history takes" if given.ahead is None else f"{given.ahead:g} s before"
    ahead = f"the next {given.eagerness} switches" if given.eagerness > 1 else "the next switch"
    least = f"precision {given.least[0]:g} and recall {given.least[1]:g}"
    parts = [f"prepares graphs for {ahead} where it will be {by}, {when}; one is used from {least} on"]
    if given.places > 1:
        parts.append(f"of {given.places} places up to {given.spread:g} m around, by {given.preference}")
    if given.budget is not None:
        parts.append(f"within a budget of {given.budget:g}")
    return ", ".join(parts)
