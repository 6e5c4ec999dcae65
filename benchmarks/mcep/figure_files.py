"""Parameters of the thesis' figures, from ``experiments/mcep`` and ``topologies/mcep``.

A file has what an experiment can say: vehicles and streets, the query, what is varied. Comments there tell
what the thesis states and what was chosen.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from node_agent.apps.mcep.config import condition_of
from node_agent.apps.mcep.graph import OperatorGraph
from node_agent.apps.mcep.interest import Condition
from node_agent.apps.mcep.model import Policy
from node_agent.apps.mcep.situations import graph_of
from orchestrator.apps.mcep.planned import section_of, switch_of
from orchestrator.apps.mcep.section import QuerySection
from orchestrator.planning.load import load_checked
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.sweep import choices

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Asking:
    """What a driver asks for in one cell of a sweep. ``edge``: of the square around the driver."""

    graph: OperatorGraph
    edge: float
    history: float
    policy: Policy
    condition: Condition


@dataclass(frozen=True)
class Figure:
    """``changes``: values of keys of the query instead of those in the file."""

    number: str
    experiment: Experiment
    changes: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def _query(self) -> tuple[str, QuerySection]:
        (entry,) = self.experiment.entries().values()
        ((name, section),) = section_of(entry).queries.items()
        return name, section

    @property
    def file(self) -> str:
        return file_of(self.number).relative_to(ROOT).as_posix()

    def asking(self, **values: Any) -> Asking:
        """``values``: of keys of the query, as a file would say them; ``a__b`` is the key ``b`` of ``a``."""
        document = self._query[1].model_dump()
        for key, value in {**dict(self.changes), **values}.items():
            *path, last = key.split("__")
            inner = document
            for each in path:
                inner = inner[each]
            inner[last] = value
        said = QuerySection.model_validate(document)
        assert said.edge is not None, "interests of the figures are squares"
        return Asking(
            graph_of(said.situation, said.values),
            said.edge,
            said.history,
            Policy(said.order, said.completeness, said.suppression),
            condition_of(switch_of(said.switch)),
        )

    def swept(self, key: str) -> dict[str, Any]:
        """The values of a key of the query that the file varies, by their names in tables."""
        values = self.experiment.sweep[f"interest.queries.{self._query[0]}.{key}"]
        return {each.label or str(each.value): each.value for each in choices(values)}

    def parameters(self) -> dict[str, Any]:
        topology = self.experiment.topology
        query = self._query[1].model_dump(mode="json", exclude_unset=True)
        return {
            "file": self.file,
            "vehicles": len(topology.node_names) - 1,
            "area_m": list(topology.area),
            "query": {**query, **dict(self.changes)},
            "sweep": {key: list(values) for key, values in self.experiment.sweep.items()},
        }


def file_of(number: str) -> Path:
    return ROOT / "experiments" / "mcep" / f"fig{number.replace('.', '-')}.yaml"


def figure(number: str) -> Figure:
    return Figure(number, load_checked(file_of(number)))


def changed(given: Figure, **changes: Any) -> Figure:
    return replace(given, changes=(*given.changes, *changes.items()))
