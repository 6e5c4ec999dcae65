"""Checks queries about faces: the named detectors and strangers must exist, and expected figures must be
available.
"""

from collections.abc import Sequence

import msgspec

from node_agent.apps.dataflow.faces.params import PEOPLE, DetectParams, SceneParams
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from orchestrator.apps.dataflow.faces.installed import lacking_detector
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.query import Dataflow
from orchestrator.results.expectations import parse_expectation
from orchestrator.results.registry import ANALYTICS
from orchestrator.spec.problems import Finding, Place


def face_findings(setting: Setting) -> list[Finding]:
    return _detector_findings(setting) + _stranger_findings(setting)


def _detector_findings(setting: Setting) -> list[Finding]:
    findings = []
    for operator in _of_kind(setting, "detect_faces"):
        if lacking := lacking_detector(msgspec.convert(operator.params, DetectParams).detector):
            findings.append(Finding(_place(setting, operator, "detector"), lacking))
    return findings


def _stranger_findings(setting: Setting) -> list[Finding]:
    for operator in _of_kind(setting, "synthetic_scene"):
        scene = msgspec.convert(operator.params, SceneParams)
        if scene.persons == PEOPLE and scene.strangers > 0:
            text = f"all {PEOPLE} people of the scene are of interest: nobody is left to be a stranger"
            hint = f"use at most {PEOPLE - 1} persons, or strangers: 0 where the query has that"
            return [Finding(_place(setting, operator, "persons"), text, hint)]
    return []


def figure_findings(expect: Sequence[str], queries: Sequence[Query]) -> list[Finding]:
    """Reports expectations about faces if none of the queries reports faces."""
    if not expect or any(operator.kind == "show_faces" for query in queries for operator in query.operators):
        return []
    wanted = [parse_expectation(text).metric for text in expect]
    hint = "query: face_recognition has one"
    return [
        Finding(
            ("expect", place), f"no run of this query has {metric}: it has no sink that shows faces", hint
        )
        for place, metric in enumerate(wanted)
        if metric in {each.name for each in ANALYTICS["faces"].metrics}
    ]


def _of_kind(setting: Setting, kind: str) -> list[OperatorSpec]:
    return [operator for operator in setting.query.operators if operator.kind == kind]


def _place(setting: Setting, operator: OperatorSpec, key: str) -> Place:
    if isinstance(setting.section.query, Dataflow):
        return setting.at("query", "operators", operator.name, key)
    # Arguments of a query in Python have names that the user chose.
    inner = (key,) if key in type(setting.section.query).model_fields else ()
    return setting.at("query", *inner)
