"""Agents in virtual time over contacts: traffic passes while links are up, and routing uses them."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.backends.sim.simulation import Simulation
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import planned

NS = 1_000_000_000
FLOWS = {"none": [["bus", "base"]], "olsr": [["field", "base"]]}
LINKS = [
    {
        "between": ["bus", "base"],
        "times": [["5s", "15s"], ["25s", "45s"]],
        "rate": "1 Mb/s",
        "latency": "5 ms",
    },
    {"between": ["field", "bus"], "always": True},
]


def records(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()
    ]


def simulated(directory: Path, routing: str, faults: list[dict[str, Any]] | None = None) -> Simulation:
    found = Experiment.model_validate(
        {
            "name": "ferry",
            "topology": {
                "name": "ferry",
                "nodes": ["field", "bus", "base"],
                "radio": {"model": "contacts", "rate": "2 Mb/s", "links": LINKS},
            },
            "backend": "sim",
            "routing": {"protocol": routing},
            "flows": [{"from": one, "to": other, "rate": "64 kb/s"} for one, other in FLOWS[routing]],
            "faults": faults or [],
            "warmup": "0s",
            "duration": "45s",
        }
    )
    simulation = Simulation(planned(found), "run", directory)
    simulation.up()
    simulation.converge()
    began = simulation.now_ns()
    simulation.open_sources()
    simulation.advance(45 * NS)
    assert simulation.now_ns() == began + 45 * NS
    simulation.stop()
    return simulation


def arrivals(directory: Path, began_ns: int) -> set[int]:
    """The seconds, since movement began, in which packets arrived at the base."""
    received = [
        each for each in records(directory / "nodes/base/segments") if each["kind"] == "flow_received"
    ]
    opened = {each["opened_ns"] for each in received}
    assert len(opened) == 1
    (start,) = opened
    return {second + (start - began_ns) // NS for each in received for second, *_ in each["arrived"]}


def began(directory: Path) -> int:
    """When movement began: the first change of a link comes 5 s later."""
    changes = [json.loads(line) for line in (directory / "radio/links.jsonl").read_text().splitlines()]
    times = [(each["t_ns"], each["up"]) for each in changes if (each["src"], each["dst"]) == ("bus", "base")]
    start: int = times[0][0] - 5 * NS
    assert [((t - start) / NS, up) for t, up in times][:3] == [(5.0, True), (15.0, False), (25.0, True)]
    return start


def test_neighbours_reach_each_other_while_their_link_is_up(tmp_path: Path) -> None:
    simulated(tmp_path, "none")
    seconds = arrivals(tmp_path, began(tmp_path))
    assert seconds >= {*range(6, 14), *range(26, 44)}
    assert not seconds & {*range(0, 4), *range(16, 24)}
    used = [json.loads(line) for line in (tmp_path / "radio/deliveries.jsonl").read_text().splitlines()]
    assert {(each["src"], each["dst"]) for each in used} == {("bus", "base")}
    assert all(each["delivered"] <= each["attempted"] and each["snr_db"] is None for each in used)


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        simulated(tmp_path / name, "none")
    first, second = (records(tmp_path / name / "nodes/base/segments") for name in ("one", "two"))
    assert first == second


def test_olsr_finds_ways_over_contacts(tmp_path: Path) -> None:
    simulated(tmp_path, "olsr")
    seconds = arrivals(tmp_path, began(tmp_path))
    assert len(seconds & {*range(25, 45)}) >= 5
    assert not seconds & {*range(0, 4), *range(17, 25)}


@pytest.mark.parametrize("cut", [{"cut": ["bus", "base"]}, {"silence": {"node": "bus"}}])
def test_a_fault_interrupts_a_contact(tmp_path: Path, cut: dict[str, Any]) -> None:
    simulated(tmp_path, "none", [{"at": "30s", "for": "10s", **cut}])
    seconds = arrivals(tmp_path, began(tmp_path))
    assert seconds >= {*range(6, 14), *range(26, 29), *range(41, 44)}
    assert not seconds & {*range(31, 39)}


def test_links_share_no_air_so_none_is_counted(tmp_path: Path) -> None:
    simulated(tmp_path, "none")
    assert not (tmp_path / "radio/airtime.jsonl").exists()
