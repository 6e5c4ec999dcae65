"""What can be asked of queries about faces: detectors and strangers that there are, and figures of faces."""

import msgspec

from node_agent.apps.dataflow.faces.params import PEOPLE, DetectParams, SceneParams
from node_agent.apps.dataflow.model.query import OperatorSpec
from orchestrator.apps.dataflow.faces.installed import lacking_detector
from orchestrator.apps.dataflow.spec.query import Dataflow
from orchestrator.results.expectations import parse_expectation
from orchestrator.results.registry import ANALYTICS
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import Finding, Place


def face_findings(experiment: Experiment) -> list[Finding]:
    return _detector_findings(experiment) + _stranger_findings(experiment) + _figure_findings(experiment)


def _detector_findings(experiment: Experiment) -> list[Finding]:
    findings = []
    for operator in _of_kind(experiment, "detect_faces"):
        if lacking := lacking_detector(msgspec.convert(operator.params, DetectParams).detector):
            findings.append(Finding(_place(experiment, operator, "detector"), lacking))
    return findings


def _stranger_findings(experiment: Experiment) -> list[Finding]:
    for operator in _of_kind(experiment, "synthetic_scene"):
        scene = msgspec.convert(operator.params, SceneParams)
        if scene.persons == PEOPLE and scene.strangers > 0:
            text = f"all {PEOPLE} people of the scene are of interest: nobody is left to be a stranger"
            hint = f"use at most {PEOPLE - 1} persons, or strangers: 0 where the query has that"
            return [Finding(_place(experiment, operator, "persons"), text, hint)]
    return []


def _figure_findings(experiment: Experiment) -> list[Finding]:
    if not experiment.expect or _of_kind(experiment, "show_faces"):
        return []
    wanted = [parse_expectation(text).metric for text in experiment.expect]
    hint = "query: face_recognition has one"
    return [
        Finding(
            ("expect", place), f"no run of this query has {metric}: it has no sink that shows faces", hint
        )
        for place, metric in enumerate(wanted)
        if metric in {each.name for each in ANALYTICS["faces"].metrics}
    ]


def _of_kind(experiment: Experiment, kind: str) -> list[OperatorSpec]:
    return [operator for operator in experiment.dataflow().operators if operator.kind == kind]


def _place(experiment: Experiment, operator: OperatorSpec, key: str) -> Place:
    if isinstance(experiment.query, Dataflow):
        return "query", "operators", operator.name, key
    # Arguments of a query in Python have names of their own.
    return ("query", key) if key in type(experiment.query).model_fields else ("query",)
