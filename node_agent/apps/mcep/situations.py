"""Situations that drivers ask for, as operator graphs: an accident ahead, how fast traffic is.

Each is a function from its parameters to a graph. ``SITUATIONS`` names them for experiment files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from node_agent.apps.mcep.checks import check_graph
from node_agent.apps.mcep.faces import FACE, features_of, nearest
from node_agent.apps.mcep.graph import OperatorGraph, Source, Stream
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.windows import (
    AtLeast,
    Both,
    ByEvents,
    Consume,
    Count,
    Dependency,
    Full,
    Operator,
    Output,
    Partition,
    RestrictionWindow,
    Selection,
    Span,
    Step,
    ToNewest,
    Window,
    filter_operator,
)

SPEED, LANE = "speed", "lane"
"""Types of atomic events: how fast a vehicle is (m/s), and that it changed lanes."""
SENSED = (SPEED, LANE, FACE)


def speed_of(event: Event) -> float:
    found = event.attributes.get("speed", 0.0)
    return float(found) if isinstance(found, int | float) else 0.0


def accident(
    drop: float = 5.0, within: float = 5.0, changes: int = 2, changing: float = 10.0, after: float = 20.0
) -> OperatorGraph:
    """A vehicle that slows down by more than ``drop`` m/s between two of its readings, at most ``within``
    seconds apart, and then, at most ``after`` seconds later, ``changes`` changes of lanes in ``changing``
    seconds."""

    def slowed(selection: Selection) -> Step:
        first, second = selection.windows["readings"]
        lost = speed_of(first) - speed_of(second)
        return Step((Output("slowed", {"lost": lost}, second.place),) if lost > drop else ())

    def swerved(selection: Selection) -> Step:
        return Step((Output("swerved", {"changes": len(selection.windows["changes"])}),))

    def crashed(selection: Selection) -> Step:
        (slow,), (swerve,) = selection.windows["slowed"], selection.windows["swerved"]
        facts = {"lost": slow.attributes.get("lost", 0.0), "changes": swerve.attributes.get("changes", 0)}
        return Step((Output("accident", facts),))

    readings = Window("readings", SPEED, Count(2))
    slowing = Operator(
        "slowing",
        (readings,),
        RestrictionWindow(within),
        slowed,
        Full("readings"),
        partition=Partition("source"),
    )
    swerving = Operator(
        "swerving",
        (Window("changes", LANE, Span(changing)),),
        RestrictionWindow(changing),
        swerved,
        AtLeast("changes", changes),
    )
    accident = Operator(
        "accident",
        (
            Window("slowed", "slowing", Count(1), ByEvents(1), "oldest"),
            Window("swerved", "swerving", Count(1), ToNewest(), "oldest"),
        ),
        RestrictionWindow(after),
        crashed,
        Both((AtLeast("slowed", 1), AtLeast("swerved", 1))),
        (Dependency("swerved", "start", ">", "slowed", "end"),),
        Consume("all"),
    )
    streams = (
        Stream(SPEED, "slowing"),
        Stream(LANE, "swerving"),
        Stream("slowing", "accident"),
        Stream("swerving", "accident"),
        Stream("accident"),
    )
    return OperatorGraph((Source(SPEED, SPEED), Source(LANE, LANE)), (slowing, swerving, accident), streams)


def average_speed(readings: int = 10, within: float = 25.0, every: int = 1) -> OperatorGraph:
    """The mean of the last ``readings`` speeds of all vehicles, of at most the last ``within`` seconds; one
    after ``every`` readings."""

    def average(selection: Selection) -> Step:
        events = selection.windows["readings"]
        return Step((Output("average", {"speed": fmean(map(speed_of, events)), "of": len(events)}),))

    averaging = Operator(
        "averaging",
        (Window("readings", SPEED, Count(readings)),),
        RestrictionWindow(within, ByEvents(every)),
        average,
        Full("readings"),
    )
    streams = (Stream(SPEED, "averaging"), Stream("averaging"))
    return OperatorGraph((Source(SPEED, SPEED),), (averaging,), streams)


def moving_speed(readings: int = 10, above: float = 5.0, within: float = 25.0) -> OperatorGraph:
    """The mean of the last ``readings`` speeds above ``above`` m/s, of the last ``within`` seconds."""
    fast = filter_operator("fast", SPEED, lambda event: speed_of(event) > above, "fast")
    average = average_speed(readings, within).operators[0]
    (window,) = average.windows
    averaging = replace(average, windows=(replace(window, stream="fast"),))
    streams = (Stream(SPEED, "fast"), Stream("fast", averaging.name), Stream(averaging.name))
    return OperatorGraph((Source(SPEED, SPEED),), (fast, averaging), streams)


def friend(apart: float = 0.45, known: Mapping[str, Sequence[str]] | None = None) -> OperatorGraph:
    """A face that differs by at most ``apart`` from a picture of somebody who is known; ``known``: by name,
    faces as text."""
    pictures = {
        name: [found for each in faces if (found := features_of(each)) is not None]
        for name, faces in (known or {}).items()
    }

    def recognise(selection: Selection) -> Step:
        found = []
        for event in selection.events:
            face = features_of(event.attributes.get("features"))
            best = nearest(face, pictures) if face is not None else None
            if best is not None and best[1] <= apart:
                found.append(Output("friend", {"friend": best[0], "apart": best[1]}, event.place))
        return Step(tuple(found))

    recognising = replace(
        filter_operator("recognise", FACE, lambda event: True, "friend"), correlate=recognise
    )
    streams = (Stream(FACE, "recognise"), Stream("recognise"))
    return OperatorGraph((Source(FACE, FACE),), (recognising,), streams)


class Parameter(NamedTuple):
    """``unit``: m/s, s, or none for a plain number. One whose default is a whole number counts something."""

    default: float
    unit: str
    says: str


@dataclass(frozen=True)
class Situation:
    """``parameters``: by name, all of them numbers above 0. ``knows``: it needs faces that are known."""

    build: Callable[..., OperatorGraph]
    parameters: Mapping[str, Parameter]
    says: str
    knows: bool = False


_OLDEST = Parameter(25.0, "s", "of at most so long before")
SITUATIONS: dict[str, Situation] = {
    "accident": Situation(
        accident,
        {
            "drop": Parameter(5.0, "m/s", "a vehicle is slower by more than this"),
            "within": Parameter(5.0, "s", "from one reading to its next, at most so long after it"),
            "changes": Parameter(2, "", "and then so many changes of lanes come, by any vehicles"),
            "changing": Parameter(10.0, "s", "in so long"),
            "after": Parameter(20.0, "s", "at most so long after it slowed down"),
        },
        "a vehicle slows down suddenly, and others change lanes",
    ),
    "average_speed": Situation(
        average_speed,
        {
            "readings": Parameter(10, "", "so many of the last readings"),
            "within": _OLDEST,
            "every": Parameter(1, "", "a mean after so many readings"),
        },
        "the mean of the last speeds of all vehicles",
    ),
    "moving_speed": Situation(
        moving_speed,
        {
            "readings": Parameter(10, "", "so many of the last readings that are faster than `above`"),
            "above": Parameter(5.0, "m/s", "slower ones do not count"),
            "within": _OLDEST,
        },
        "the mean of the last speeds of vehicles that do not stand or crawl",
    ),
    "friend": Situation(
        friend,
        {"apart": Parameter(0.45, "", "by so much a face may differ from a picture of a friend")},
        "a camera sees the face of a friend",
        knows=True,
    ),
}


def values_of(name: str, given: Mapping[str, float]) -> dict[str, float]:
    """All parameters of a situation. Raises KeyError for a situation or parameter that is not known."""
    parameters = SITUATIONS[name].parameters
    if unknown := set(given) - set(parameters):
        raise KeyError(sorted(unknown)[0])
    found = {key: given.get(key, each.default) for key, each in parameters.items()}
    return {
        key: int(value) if isinstance(parameters[key].default, int) else value for key, value in found.items()
    }


def graph_of(
    name: str, parameters: Mapping[str, float], known: Mapping[str, Sequence[str]] | None = None
) -> OperatorGraph:
    """``known``: faces by name, as text. Raises KeyError for a situation or parameter that is not known,
    McepError for values without meaning."""
    situation = SITUATIONS[name]
    values = values_of(name, parameters)
    graph = situation.build(**values, **({"known": known} if situation.knows else {}))
    check_graph(graph)
    return graph
