"""The half of the beacons that the orchestrator knows: section, plan, a metric and a part of the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.planning.application import Application, AppPlan, Examiner
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.contribution import (
    Contribution,
    Ends,
    Figures,
    Metric,
    PlanReader,
    Rows,
    Section,
    Table,
)
from orchestrator.results.spark import Ingest, Reading, Subject
from orchestrator.results.views import View
from orchestrator.spec.application import AppEntry, AppSection
from orchestrator.spec.base import Section as FileSection
from orchestrator.spec.units import PositiveDuration
from tests.extension.beacons.agent import BeaconsConfig, scopes_of


class BeaconSettings(FileSection):
    every: PositiveDuration = 1.0


class BeaconsSection(AppSection):
    beacons: BeaconSettings


@dataclass(frozen=True)
class BeaconsPlan(AppPlan):
    name: str
    members: tuple[str, ...]
    every_s: float
    kind: ClassVar[str] = "beacons"

    def nodes(self) -> tuple[str, ...]:
        return self.members

    def agent_config(self, node: str) -> BeaconsConfig:
        return BeaconsConfig(self.members, self.every_s)

    def record(self) -> dict[str, Any]:
        return {"members": list(self.members), "every_s": self.every_s}


class BeaconsApplication(Application):
    section = BeaconsSection

    def plan(self, entry: AppEntry) -> AppPlan:
        assert isinstance(entry.section, BeaconsSection)
        nodes = entry.scenario.topology.node_names
        return BeaconsPlan(entry.name, nodes, entry.section.beacons.every)

    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        return BeaconsPlan(entry.name, tuple(record["members"]), record["every_s"])

    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        return Examiner(scopes_of(record["members"]))


BEACONS = BeaconsApplication()


def heard(ingest: Ingest) -> DataFrame:
    return ingest.records("beacon_heard")


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    last = reading.table("beacons").groupBy("run", "app", "node").agg(F.max("count").alias("count"))
    return {"heard": last.groupBy("run", "app").agg(F.sum("count").alias("beacons"))}


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    return {"beacons_heard": next((row["beacons"] for row in rows["heard"]), 0)}


def section(view: View) -> str:
    found = view.groups[0]["metrics"]["beacons_heard"]["mean"]
    return f'<h2 id="beacons">Beacons</h2><p>{found:.0f} beacons were heard.</p>\n'


def _members(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(record["members"])


HEARD = Metric("beacons_heard", "beacons heard by all nodes", "beacons", averaged=True)
CONTRIBUTION = Contribution(
    kind="beacons",
    reader=PlanReader(_members, lambda nodes: Ends(nodes, nodes), lambda nodes: {}, scopes_of),
    tables=(
        Table(
            "beacons",
            "a node's count of beacons",
            {"run": TEXT, "app": TEXT, "node": TEXT, "t_ns": COUNT, "count": COUNT},
            ("t_ns", "node"),
            heard,
        ),
    ),
    figures=(Figures(frames, values, (HEARD,)),),
    sections=(Section(10, section),),
)
