"""The plan of situations around moving objects in one run: brokers with their areas, clients with drives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from node_agent.apps.mcep.config import (
    InterestConfig,
    QueryConfig,
    Settings,
    WhenFar,
    WhenPoor,
    WhenTimed,
    problems,
)
from node_agent.apps.mcep.situations import SITUATIONS
from node_agent.apps.mcep.telemetry import scopes_of
from node_agent.telemetry.belief import AppScopes
from orchestrator.apps.mcep.reusing import reuse_lines
from orchestrator.planning.application import AppPlan, End

if TYPE_CHECKING:
    from rich.console import RenderableType

KIND = "interest"


class Recorded(msgspec.Struct, frozen=True):
    """What a manifest has of it. ``drives``: by client, see ``node_agent.apps.mcep.config``. ``filmed``: by
    camera, whose faces are on which picture, as numbers of ``faces``."""

    settings: Settings
    drives: dict[str, str]
    faces: tuple[str, ...] = ()
    filmed: dict[str, dict[int, tuple[int, ...]]] = {}

    def config(self, node: str) -> InterestConfig:
        filmed = {
            picture: tuple(self.faces[number] for number in seen)
            for picture, seen in self.filmed.get(node, {}).items()
        }
        return InterestConfig(node, self.settings, self.drives.get(node, ""), filmed)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.settings.areas, *self.settings.clients)


def recorded_in(record: Mapping[str, Any]) -> Recorded | None:
    """From what a manifest records; None if it cannot be read."""
    try:
        found = msgspec.convert(record["interest"], Recorded, str_keys=True)
    except (msgspec.ValidationError, KeyError, TypeError):
        return None
    seen = [n for pictures in found.filmed.values() for each in pictures.values() for n in each]
    if not all(0 <= number < len(found.faces) for number in seen):
        return None
    return None if any(problems(found.config(node), node) for node in found.nodes) else found


def scopes(recorded: Recorded) -> AppScopes:
    return scopes_of(recorded.config(node) for node in recorded.nodes)


@dataclass(frozen=True)
class InterestPlan(AppPlan):
    name: str
    recorded: Recorded
    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "Situations around moving objects"

    def nodes(self) -> tuple[str, ...]:
        return self.recorded.nodes

    def agent_config(self, node: str) -> InterestConfig:
        return self.recorded.config(node)

    def record(self) -> dict[str, Any]:
        return {"interest": msgspec.to_builtins(self.recorded, str_keys=True)}

    def traffic(self) -> tuple[tuple[End, End], ...]:
        settings = self.recorded.settings
        homes = dict.fromkeys((each.name, each.home) for each in settings.queries)
        return tuple(
            (End("sensors", client), End(query, home)) for client in settings.clients for query, home in homes
        )

    def summary(self) -> list[tuple[str, str]]:
        settings = self.recorded.settings
        return [
            *((each.name, query_line(each)) for each in settings.queries),
            ("Brokers", f"{len(settings.areas)}, for {len(settings.clients)} clients"),
            *([("Reuse", reuse_lines(settings.reuse)[0])] if settings.reuse is not None else []),
        ]

    def shown(self) -> "list[RenderableType]":
        from orchestrator.apps.mcep.printed import plan_lines

        return list(plan_lines(self.recorded))

    def document(self) -> dict[str, Any]:
        settings = self.recorded.settings
        return {
            "queries": [
                {**msgspec.to_builtins(each), "follows": query_line(each)} for each in settings.queries
            ],
            "brokers": {name: list(box) for name, box in settings.areas.items()},
            "polygons": {name: [list(each) for each in found] for name, found in settings.polygons.items()},
            "clients": list(settings.clients),
            "kept_s": settings.ttl,
            "reuse": msgspec.to_builtins(settings.reuse),
        }

    def graph(self, form: str) -> str:
        from orchestrator.apps.mcep.printed import mermaid, svg

        return svg(self.recorded) if form == "svg" else mermaid(self.recorded)


def query_line(query: QueryConfig) -> str:
    """A query in one line."""
    kept = f", and what was there {query.history:g} s before" if query.history else ""
    of = f"the middle of the {query.cells:g} m square of {query.focal}" if query.cells else query.focal
    if query.shape == "square":
        where = f"in a square of {2 * query.radius:g} m around {of}"
    else:
        where = f"within {query.radius:g} m of {of}"
    return f"{query.situation} {where}{kept}; {condition_text(query)}"


def parameters_text(query: QueryConfig) -> str:
    """Its parameters with their units."""
    known = SITUATIONS[query.situation].parameters
    return ", ".join(
        f"{name} {value:g} {known[name].unit}".rstrip() for name, value in query.parameters.items()
    )


def condition_text(query: QueryConfig) -> str:
    match query.when:
        case WhenTimed(seconds):
            return f"the interest switches more than {seconds:g} s after the last switch"
        case WhenFar(metres):
            return f"the interest switches more than {metres:g} m from the last switch"
        case WhenPoor(precision, recall, look_back):
            return (
                f"the interest switches once precision is at most {precision:g} or recall at most "
                f"{recall:g}, of the last {look_back:g} s"
            )
        case _:
            return "the interest switches with every place"
