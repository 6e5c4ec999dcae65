"""Applications in experiment files: one at the top level, several by name, or both."""

from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.apps.dataflow.spec.section import DataflowSection
from orchestrator.errors import BadInput
from orchestrator.planning.application import application
from orchestrator.planning.sweep import cells
from orchestrator.spec import experiment as spec
from orchestrator.spec.application import AppSection
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import chain, deployed, experiment, planned, section, topology


def several(**changes: Any) -> Experiment:
    apps = {"one": {"query": chain(1), "replicas": 2}, "two": {"query": chain(2)}}
    document = {"name": "demo", "topology": topology(), "apps": apps, "duration": "60s"}
    return Experiment.model_validate(document | changes)


def test_a_query_at_the_top_level_is_an_application_of_that_name() -> None:
    found = experiment(replicas=3)
    assert list(found.apps) == ["query"] and isinstance(found.apps["query"], DataflowSection)
    assert section(found).replicas == 3
    written_out = {"query": {"query": "synthetic_chain", "replicas": 3}}
    document = {"name": "demo", "topology": topology(), "apps": written_out, "duration": "60s"}
    assert Experiment.model_validate(document) == found


def test_both_ways_can_be_combined_and_survive_the_run_directory() -> None:
    found = several(query="synthetic_chain", switching={"period": "1s"})
    assert list(found.entries()) == ["query", "one", "two"]
    assert section(found).switching.period == 1.0 and section(found, "one").replicas == 2
    assert found.resolved()["switching"]["period"] == 1.0
    assert set(found.resolved()["apps"]) == {"one", "two"}
    assert Experiment.model_validate(found.resolved()) == found


def test_a_sweep_varies_a_value_of_one_application() -> None:
    found = several(query="synthetic_chain", sweep={"apps.one.replicas": [1, 3], "replicas": [1, 2]})
    made = cells(found)
    assert [(section(c.experiment, "one").replicas, section(c.experiment).replicas) for c in made] == [
        (1, 1),
        (1, 2),
        (3, 1),
        (3, 2),
    ]
    assert made[2].factors == {"apps.one.replicas": 3, "replicas": 1}


def test_what_no_factor_varies_is_the_same_value_in_every_cell() -> None:
    found = several(sweep={"apps.one.replicas": [1, 2], "seed": [1, 2]})
    assert all(cell.experiment.topology is found.topology for cell in cells(found))


def test_applications_are_drawn_apart_and_one_alone_as_ever() -> None:
    alone, found = experiment(query=chain(1)), several(query=chain(1), apps={"one": {"query": chain(1)}})
    assert deployed(found) == deployed(alone)
    assert deployed(found, "one") != deployed(alone)
    own = {"query": chain(1), "placement": {"policy": "random", "seed": 1}}
    assert deployed(several(apps={"one": own}), "one") == deployed(alone)


def test_an_entry_is_one_application(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(AppSection):
        flows: int = 0

    monkeypatch.setattr(spec, "SECTIONS", {**spec.SECTIONS, "flows": Other})
    with pytest.raises(ValidationError, match="several applications in one entry: query, flows"):
        several(apps={"one": {"query": "synthetic_chain", "flows": 1}})


def test_every_application_is_planned_and_recorded() -> None:
    run = planned(several())
    record = run.record()
    assert {name: app["kind"] for name, app in record.items()} == {"one": "query", "two": "query"}
    assert len(record["one"]["plan"]["replicas"]) == 4
    assert run.seeds() == {"experiment": 1, "one.placement": None, "two.placement": None}
    assert {source.name for source, _ in run.traffic()} == {"one.camera", "two.camera"}


def test_a_manifest_names_no_code() -> None:
    with pytest.raises(BadInput, match="there is no application"):
        application("/tmp/evil.py:APPLICATION")
