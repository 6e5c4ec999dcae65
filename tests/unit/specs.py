"""Small valid documents to build test experiments from."""

from typing import Any

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.planning.placement import deployment_plan
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.section import DataflowSection
from orchestrator.planning.planned import PlannedRun
from orchestrator.planning.semantics import plan_run
from orchestrator.spec.experiment import Experiment


def topology(**changes: Any) -> dict[str, Any]:
    return {
        "name": "field",
        "nodes": 25,
        "area": "1200 m x 1200 m",
        "mobility": {"model": "random_waypoint", "speed": "5 m/s"},
        "radio": {"model": "disc", "range": "300 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
    } | changes


def experiment(**changes: Any) -> Experiment:
    document = {"name": "demo", "topology": topology(), "query": "synthetic_chain", "duration": "60s"}
    return Experiment.model_validate(document | changes)


def chain(operators: int) -> dict[str, Any]:
    return {"name": "synthetic_chain", "operators": operators}


def section(found: Experiment, app: str = "query") -> DataflowSection:
    """The section of one of its dataflows."""
    dataflow = found.apps[app]
    assert isinstance(dataflow, DataflowSection)
    return dataflow


def setting(found: Experiment, app: str = "query") -> Setting:
    return Setting.of(found.entries()[app])


def planned(found: Experiment) -> PlannedRun:
    """The experiment as one run; its sweep, if there is one, is left out of account."""
    run, findings = plan_run(found)
    assert run is not None, findings
    return run


def deployed(found: Experiment, app: str = "query") -> DeploymentPlan:
    """Where the replicas of one of its dataflows are."""
    return deployment_plan(setting(found, app))
