"""A small town: two brokers, four vehicles that drive to and fro, and a query that follows one of them."""

from itertools import combinations
from typing import Any

from orchestrator.apps.mcep.plan import InterestPlan
from orchestrator.planning.semantics import plan_run
from orchestrator.spec.experiment import Experiment

BROKERS, CARS = ("b1", "b2"), ("car1", "car2", "car3", "car4")
QUERY = {
    "situation": "average_speed",
    "parameters": {"readings": 3, "within": 5},
    "focal": "car1",
    "radius": "150 m",
    "history": "5s",
    "suppression": True,
    "switch": {"distance": "20 m"},
}


def document(
    interest: dict[str, Any] | None = None, cuts: dict[tuple[str, str], Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """``cuts``: by two nodes, when their link is up; all others always are. A broker ``b3`` stands aside."""
    brokers = (*BROKERS, "b3")
    pairs = [*combinations(brokers, 2), *((car, broker) for car in CARS for broker in brokers)]
    links = [
        {"between": list(pair), **({"times": cuts[pair]} if cuts and pair in cuts else {"always": True})}
        for pair in pairs
    ]
    topology = {
        "name": "town",
        "nodes": [*brokers, *CARS],
        "area": "400 m x 200 m",
        "mobility": {
            "model": "stations",
            "at": {"b1": ["100 m", "100 m"], "b2": ["300 m", "100 m"], "b3": ["400 m", "200 m"]},
            "others": {"model": "random_waypoint", "speed": "15 m/s"},
        },
        "radio": {"model": "contacts", "rate": "2 Mb/s", "latency": "10 ms", "links": links},
    }
    served = {"brokers": list(BROKERS), "clients": list(CARS)}
    settings = {**served, "stop": "30s", "queries": {"near": QUERY}} | (interest or {})
    common = {"name": "line", "topology": topology, "routing": "none", "backend": "sim", "duration": "45s"}
    return {**common, "interest": settings, **changes}


def planned(whole: dict[str, Any]) -> InterestPlan:
    run, findings = plan_run(Experiment.model_validate(whole))
    assert run is not None, findings
    plan = run.apps["interest"]
    assert isinstance(plan, InterestPlan)
    return plan
