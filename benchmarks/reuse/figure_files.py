"""Parameters of the thesis' figures on reuse, from ``experiments/mcep``: who asks for what, what is varied.

given = figure("5.4")
given.edges, given.thresholds      # as the file's sweep has them
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.mcep.figure_files import ROOT, file_of
from benchmarks.reuse.traffic import Window
from node_agent.apps.mcep.reuse.batches import ALONE, Batching, Counted, Timed
from orchestrator.apps.mcep.reusing import BatchSection, LeastSection, ReuseSection
from orchestrator.apps.mcep.section import InterestSection, InterestSettings, QuerySection
from orchestrator.planning.load import load_checked
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.sweep import choices

QUERY = "mean"
"""The name of the query in all files."""


@dataclass(frozen=True)
class Figure:
    number: str
    experiment: Experiment

    @property
    def file(self) -> str:
        return file_of(self.number).relative_to(ROOT).as_posix()

    @cached_property
    def _query(self) -> QuerySection:
        return self._section.queries[QUERY]

    @cached_property
    def _section(self) -> InterestSettings:
        (entry,) = self.experiment.entries().values()
        assert isinstance(entry.section, InterestSection)
        return entry.section.interest

    @property
    def _reuse(self) -> ReuseSection:
        found = self._section.reuse
        assert isinstance(found, ReuseSection), "the files of these figures share"
        return found

    @property
    def vehicles(self) -> int:
        return len(self.experiment.topology.node_names) - len(self._section.brokers)

    @property
    def seconds(self) -> float:
        return self.experiment.duration

    @property
    def cars(self) -> int:
        """Those who ask."""
        return len(self._query.each)

    @property
    def window(self) -> Window:
        values = self._query.values
        return Window(int(values["readings"]), int(values["every"]))

    @property
    def edge(self) -> float:
        assert self._query.edge is not None, "interests of the figures are squares"
        return self._query.edge

    @property
    def batching(self) -> Batching:
        return batching_of(self._reuse.batch)

    @property
    def threshold(self) -> float:
        return self._reuse.quality.precision

    @cached_property
    def edges(self) -> list[float]:
        said = self._query.model_dump()
        found = [QuerySection.model_validate({**said, "edge": each}).edge for each in self._swept("edge")]
        return [each for each in found if each is not None]

    @cached_property
    def numbers(self) -> list[int]:
        said = self._query.model_dump()
        every = (QuerySection.model_validate({**said, "each": each}) for each in self._swept("each"))
        return [len(each.each) for each in every]

    @cached_property
    def thresholds(self) -> list[float]:
        values = choices(self.experiment.sweep["interest.reuse.quality"])
        return [LeastSection.model_validate(each.value).precision for each in values]

    def parameters(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "query": self._query.model_dump(mode="json", exclude_unset=True),
            "reuse": self._reuse.model_dump(mode="json", exclude_unset=True),
            "sweep": {key: list(values) for key, values in self.experiment.sweep.items()},
        }

    def _swept(self, key: str) -> list[Any]:
        return [each.value for each in choices(self.experiment.sweep[f"interest.queries.{QUERY}.{key}"])]


def batching_of(batch: BatchSection | None) -> Batching:
    if batch is None:
        return ALONE
    return Counted(batch.count) if batch.count is not None else Timed(batch.time or 0.0)


def figure(number: str) -> Figure:
    """``number``: such as 5.4."""
    return Figure(number, load_checked(file_of(number)))
