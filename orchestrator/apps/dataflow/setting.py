"""One dataflow of an experiment with the scenario that it runs in: what its checks and planning work on."""

from dataclasses import dataclass

from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.spec.placement import DEFAULT
from orchestrator.apps.dataflow.spec.section import DataflowSection
from orchestrator.spec.application import AppEntry
from orchestrator.spec.problems import Place
from orchestrator.spec.scenario import Scenario
from orchestrator.spec.topology import Topology

KIND = "query"


@dataclass(frozen=True)
class Setting:
    """``query`` is what the section builds: it is built once."""

    entry: AppEntry
    section: DataflowSection
    query: Query

    @classmethod
    def of(cls, entry: AppEntry) -> "Setting":
        section = cls.section_of(entry)
        return cls(entry, section, section.dataflow())

    @staticmethod
    def section_of(entry: AppEntry) -> DataflowSection:
        assert isinstance(entry.section, DataflowSection), "the registry finds applications by their sections"
        return entry.section

    @property
    def scenario(self) -> Scenario:
        return self.entry.scenario

    @property
    def topology(self) -> Topology:
        return self.entry.scenario.topology

    def at(self, *place: str | int) -> Place:
        return self.entry.at(*place)

    def placement_policy(self) -> str:
        return str(getattr(self.section.placement, "policy", DEFAULT))

    def placement_seed(self) -> str:
        """Of the draw of nodes: the one that the section gives, or else that of the run.

        Applications of one run are drawn apart: two queries are not on the same nodes by design.
        """
        own = getattr(self.section.placement, "seed", None)
        if own is not None:
            return str(own)
        seed, name = self.scenario.seed, self.entry.name
        return str(seed) if name == KIND else f"{seed}/{name}"
