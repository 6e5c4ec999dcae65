"""What an experiment file says of situations around moving objects.

interest:
  brokers: [b1, b2, b3, b4]
  queries:
    ahead: {situation: accident, focal: car1, radius: 300 m, history: 60s, switch: {after: 5s}}
"""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from node_agent.apps.mcep.areas import MOST_CORNERS
from node_agent.apps.mcep.geometry import Box, Point, Polygon
from node_agent.apps.mcep.model import Completeness, Order
from node_agent.apps.mcep.situations import SITUATIONS, Parameter, values_of
from orchestrator.apps.mcep.foretelling import PredictSection
from orchestrator.apps.mcep.migrating import MigrateSection, OwnMigrate
from orchestrator.apps.mcep.reusing import OwnReuse, OwnReuseSection, ReuseSection
from orchestrator.spec.application import AppSection
from orchestrator.spec.base import Name, Section
from orchestrator.spec.node_ranges import counted
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.units import (
    DURATION,
    SHARE,
    SPEED,
    Duration,
    Length,
    PositiveDuration,
    PositiveLength,
    Quantity,
)

Stretch = tuple[Length, Length]


def _read_corners(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not 3 <= len(value) <= MOST_CORNERS:
        text = f"{shown(value)} is no polygon: it has 3 to {MOST_CORNERS} corners"
        raise unusable(text, "polygon: [[0 m, 0 m], [500 m, 0 m], [0 m, 500 m]]")
    findings = [
        Finding((number,), f"{shown(each)} is no corner", "write it like [500 m, 0 m]")
        for number, each in enumerate(value)
        if not isinstance(each, list | tuple) or len(each) != 2
    ]
    if findings:
        raise Unusable(findings[0])
    return tuple(map(tuple, value))


Corners = Annotated[
    tuple[Stretch, ...],
    BeforeValidator(_read_corners, json_schema_input_type=list[tuple[float | str, float | str]]),
]


_NUMBER = Quantity("a number", {}, ("0.5", "2"), "", 0, 1e9, above_low=True)
_COUNT = Quantity("a number", {}, ("2", "10"), "events", 1, 100_000, whole=True)


def _quantity(parameter: Parameter) -> Quantity:
    """What a parameter of a situation may be."""
    if isinstance(parameter.default, int):
        return _COUNT
    return {"m/s": SPEED.positive(), "s": DURATION.positive()}.get(parameter.unit, _NUMBER)


class AreaSection(Section):
    """The part of the area that a broker serves: a rectangle, or a polygon."""

    x: Stretch | None = Field(default=None, description="From where to where", examples=[["0 m", "500 m"]])
    y: Stretch | None = Field(default=None, examples=[["0 m", "500 m"]])
    polygon: Corners | None = Field(
        default=None,
        description="Its corners, one after the other",
        examples=[[["0 m", "0 m"], ["500 m", "0 m"], ["0 m", "500 m"]]],
    )

    @model_validator(mode="after")
    def _is_an_area(self) -> "AreaSection":
        if self.polygon is not None and (self.x is not None or self.y is not None):
            raise unusable("a rectangle and a polygon are given: an area has one form", "leave one out")
        findings = []
        for key, stretch in (("x", self.x), ("y", self.y)):
            if stretch is None:
                if self.polygon is None:
                    text, hint = (
                        f"{key} is missing: where does the area begin and end?",
                        f"{key}: [0 m, 500 m]",
                    )
                    findings.append(Finding((), text, f"{hint}, or give a polygon"))
            elif stretch[0] >= stretch[1]:
                text = "the area is empty: it must end after it begins"
                findings.append(Finding((key,), text, f"{key}: [0 m, 500 m]"))
        if findings:
            raise Unusable(*findings)
        return self

    @property
    def shape(self) -> Box | Polygon:
        if self.polygon is not None:
            return Polygon(tuple(Point(*each) for each in self.polygon))
        assert self.x is not None and self.y is not None, "validated"
        return Box(self.x[0], self.y[0], self.x[1], self.y[1])


class QualitySection(Section):
    """How well the processed region must stand for the wanted one, counted in events."""

    precision: Annotated[float, SHARE] = Field(examples=["90%"])
    recall: Annotated[float, SHARE] = Field(examples=["90%"])
    look_back: PositiveDuration = Field(default=10.0, description="The events of so long before are counted")


class SwitchSection(Section):
    """When the interest follows its object; with none of these with every place."""

    other_names: ClassVar[dict[str, str]] = {
        "timed": "after",
        "every": "after",
        "period": "after",
        "time": "after",
        "spatial": "distance",
        "moved": "distance",
        "qor": "quality",
    }

    after: PositiveDuration | None = Field(default=None, description="So long after the last switch")
    distance: PositiveLength | None = Field(default=None, description="So far from the last switch")
    quality: QualitySection | None = Field(default=None, description="When it is no better than this")

    @model_validator(mode="after")
    def _one(self) -> "SwitchSection":
        given = [key for key in ("after", "distance", "quality") if getattr(self, key) is not None]
        if len(given) > 1:
            raise unusable(f"{' and '.join(given)} are given: a query has one condition", "leave one out")
        return self


def _read_each(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise unusable(f"{shown(value)} is no list of clients", "each: [car1..car20]")
    names = tuple(str(name) for _, name in counted(value))
    if len(set(names)) < len(names):
        raise unusable("a client is listed twice")
    return names


class QuerySection(Section):
    """A situation wanted around a client, wherever it is."""

    other_names: ClassVar[dict[str, str]] = {
        "focal_object": "focal",
        "around": "focal",
        "object": "focal",
        "follow": "focal",
        "within": "radius",
        "range": "radius",
        "region": "radius",
        "side": "edge",
        "past": "history",
        "delta": "history",
        "condition": "switch",
        "prediction": "predict",
    }

    situation: str = Field(description="; ".join(f"{name}: {each.says}" for name, each in SITUATIONS.items()))
    focal: str = Field(default="", description="The client that the interest follows", examples=["car1"])
    each: Annotated[tuple[str, ...], BeforeValidator(_read_each, json_schema_input_type=list[str])] = Field(
        default=(),
        description="Instead of focal: clients that have a query like this each, and ranges of them; it is "
        "called by both names, such as near-car1",
        examples=[["car1..car20"]],
    )
    radius: PositiveLength | None = Field(default=None, description="Of a circle", examples=["300 m"])
    edge: PositiveLength | None = Field(
        default=None, description="Of a square, instead of a circle", examples=["500 m"]
    )
    history: Duration = Field(default=0.0, description="So long before each switch is wanted, too")
    parameters: dict[str, int | float | str] = Field(
        default={}, description="Of the situation", examples=[{"drop": "3 m/s", "changes": 1}]
    )
    order: Order = Field(
        default="spatiotemporal", description="Within and between regions, between them only, or none"
    )
    completeness: Completeness = Field(
        default="weak",
        description="All results of a region before the next one, the same for all who ask, or what is ready",
    )
    cells: PositiveLength | None = Field(
        default=None,
        description="The region is around the middle of the square of this size where the object is",
        examples=["200 m"],
    )
    suppression: bool = Field(
        default=False, strict=True, description="What the last region brought is not sent again"
    )
    switch: SwitchSection = Field(
        default=SwitchSection(),
        description="When the interest follows; with every place of the object if not given",
        examples=[{"after": "5s"}],
    )
    friends: tuple[str, ...] = Field(
        default=(), description="Clients whose faces cameras look for, with `situation: friend`"
    )
    home: str | None = Field(
        default=None,
        description="The broker that moves the interest; if not given, the one of the first place",
    )
    hosts: dict[str, str] = Field(default={}, description="Brokers of operators; if not given, the home")
    predict: PredictSection | None = Field(
        default=None, description="Prepares graphs where the object will be", examples=[{"ahead": "2s"}]
    )
    migrate: OwnMigrate | None = Field(
        default=None,
        description="How its operators move, if not as `migrate` beside `queries` says; false: they stay",
        examples=[False, {"plan": {"mobiles": "navigation"}}],
    )
    reuse: OwnReuse = Field(
        default=OwnReuseSection(),
        description="Whether selections are shared, if `reuse` beside `queries` says so; or what results of "
        "others must reach for this query",
        examples=[False, {"precision": "80%", "recall": "80%"}],
    )

    @model_validator(mode="after")
    def _follows_somebody(self) -> "QuerySection":
        if not self.focal and not self.each:
            raise unusable("focal is missing: whom does the interest follow?", "focal: car1")
        if self.focal and self.each:
            raise unusable(
                "focal and each are given: a query is of one client or of each of some", "give one"
            )
        return self

    @model_validator(mode="after")
    def _has_a_region(self) -> "QuerySection":
        if (self.radius is None) == (self.edge is None):
            given = "neither radius nor edge is" if self.radius is None else "radius and edge are"
            raise unusable(f"{given} given: a region is a circle or a square", "give one of them")
        return self

    @model_validator(mode="after")
    def _is_known(self) -> "QuerySection":
        situation = SITUATIONS.get(self.situation)
        if situation is None:
            text = f"there is no situation {shown(self.situation)}; expected {', '.join(SITUATIONS)}"
            raise unusable(text, did_you_mean(self.situation, SITUATIONS), at=("situation",))
        findings: list[Finding] = []
        for name, value in self.parameters.items():
            if name not in situation.parameters:
                text = f"{self.situation} has no parameter {shown(name)}"
                hint = did_you_mean(name, situation.parameters) or f"it has {', '.join(situation.parameters)}"
                findings.append(Finding(("parameters", name), text, hint))
                continue
            try:
                _quantity(situation.parameters[name]).read(value)
            except Unusable as error:
                found = error.findings
                findings += [Finding(("parameters", name), each.message, each.hint) for each in found]
        if findings:
            raise Unusable(*findings)
        return self

    @property
    def values(self) -> dict[str, float]:
        """All parameters of the situation, in SI units."""
        known = SITUATIONS[self.situation].parameters
        given = {name: _quantity(known[name]).read(value) for name, value in self.parameters.items()}
        return values_of(self.situation, given)


class CamerasSection(Section):
    """Clients that stand and film everybody in a square around them, each time they read."""

    nodes: tuple[str, ...] = Field(min_length=1, examples=[["cam1", "cam2"]])
    view: PositiveLength = Field(default=50.0, description="The edge of the square", examples=["50 m"])


class RoomSection(Section):
    """How much nodes keep."""

    waiting: Annotated[int, Field(strict=True, ge=100, le=10_000_000)] = Field(
        default=20_000, description="Messages that wait at a node; with more it takes nothing from clients"
    )
    stored: Annotated[int, Field(strict=True, ge=100, le=10_000_000)] = Field(
        default=500_000, description="Events on a broker; with more it takes nothing from clients"
    )


def _read_brokers(value: Any) -> Any:
    if isinstance(value, list | tuple):
        if len(set(map(str, value))) < len(value):
            raise unusable("a broker is listed twice")
        return dict.fromkeys(map(str, value))
    return value


class InterestSettings(Section):
    """Brokers, clients and queries."""

    brokers: Annotated[
        dict[str, AreaSection | None],
        BeforeValidator(_read_brokers, json_schema_input_type=list[Name] | dict[Name, AreaSection | None]),
    ] = Field(
        min_length=1,
        description="Nodes that serve parts of the area: a list for a grid of them, or each with its area",
        examples=[["b1", "b2", "b3", "b4"]],
    )
    clients: tuple[str, ...] | None = Field(
        default=None, description="Nodes with sensors; if not given, all that are no brokers", min_length=1
    )
    cameras: CamerasSection | None = None
    read: Annotated[float, DURATION.within(ge=0.01)] = Field(
        default=1.0, description="Clients read their speed so often"
    )
    stop: PositiveDuration | None = Field(
        default=None, description="Clients leave then, after sources open; the end of the run if not given"
    )
    keep: PositiveDuration | None = Field(
        default=None, description="Brokers keep events for so long; what queries need if not given"
    )
    room: RoomSection = RoomSection()
    migrate: MigrateSection | None = Field(
        default=None,
        description="Operators move between brokers",
        examples=[{"plan": {"mobiles": "navigation"}, "state": "15 kB"}],
    )
    reuse: ReuseSection | None = Field(
        default=None,
        description="Queries that ask for almost the same share results",
        examples=[{"algorithm": "mnh", "quality": {"precision": "60%", "recall": "60%"}}],
    )
    queries: dict[Name, QuerySection] = Field(
        min_length=1,
        description="What is wanted, by name",
        examples=[{"ahead": {"situation": "accident", "focal": "car1", "radius": "300 m"}}],
    )

    def migration(self, query: QuerySection) -> MigrateSection | None:
        """How operators of a query move; None if they stay."""
        if query.migrate is None:
            return self.migrate
        return query.migrate if query.migrate.move else None

    def of_one_client_each(self) -> "InterestSettings":
        """The same, where a query of each of some clients is a query for each of these."""
        queries: dict[str, QuerySection] = {}
        for name, said in self.queries.items():
            for client in said.each:
                queries[f"{name}-{client}"] = said.model_copy(update={"focal": client, "each": ()})
            if not said.each:
                queries[name] = said
        return self.model_copy(update={"queries": queries})


class InterestSection(AppSection):
    """Situations around moving objects."""

    interest: InterestSettings = Field(
        examples=[
            {
                "brokers": ["b1", "b2"],
                "queries": {"ahead": {"situation": "accident", "focal": "car1", "radius": "300 m"}},
            }
        ]
    )
