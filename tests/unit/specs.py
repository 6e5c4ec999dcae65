"""Small valid documents to build test experiments from."""

from typing import Any

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
