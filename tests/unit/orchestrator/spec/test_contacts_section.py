"""``radio: {model: contacts}`` in a topology: what it means, and what is said about mistakes."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from orchestrator.contacts.plan import FOREVER
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_experiment, load_topology
from orchestrator.planning.semantics import plan_run
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.topology import Topology


def document(*links: dict[str, Any], **radio: Any) -> dict[str, Any]:
    radio = {"model": "contacts", "rate": "256 kb/s", "links": list(links)} | radio
    return {"name": "ferry", "nodes": ["s1", "s2", "bus", "base"], "radio": radio}


def topology(*links: dict[str, Any], **radio: Any) -> Topology:
    return Topology.model_validate(document(*links, **radio))


def test_a_link_has_its_own_schedule_rate_latency_and_cost() -> None:
    plan = topology(
        {"between": ["bus", "base"], "periodic": {"up": "60s", "down": "5 min", "phase": "20s"}, "cost": 2},
        {"between": ["s1", "bus"], "times": [["30s", "40s"], [1, 2]], "rate": "1.2 Mb/s", "latency": "5 ms"},
        {"between": ["s2", "bus"], "always": True, "one_way": True},
        latency="10 ms",
        cost=7,
    ).contact_plan(seed=1, until=400.0)
    assert plan is not None and plan.nodes == ("s1", "s2", "bus", "base")
    first, second, third = plan.links
    assert (first.contacts, first.edp, first.eap) == (((20.0, 80.0), (380.0, 440.0)), 300.0, 60.0)
    assert (first.rate, first.latency, first.cost) == (256_000.0, 0.01, 2.0)
    assert (second.contacts, second.rate, second.latency) == (((1.0, 2.0), (30.0, 40.0)), 1.2e6, 0.005)
    assert (third.contacts, third.cost, third.one_way) == (((0.0, FOREVER),), 7.0, True)


def test_random_contacts_follow_the_seed_and_not_other_links() -> None:
    one = {"between": ["s1", "bus"], "random": {"up": "60s", "down": "300s"}}
    other = {"between": ["bus", "base"], "random": {"up": "60s", "down": "300s"}}
    alone, both = topology(one), topology(other, one)
    plans = [found.contact_plan(seed, 1e5) for found, seed in ((alone, 1), (both, 1), (alone, 2))]
    contacts = [plan.link("s1", "bus").contacts for plan in plans]  # type: ignore[union-attr]
    assert contacts[0] == contacts[1] != contacts[2]
    assert contacts[0] != plans[1].link("bus", "base").contacts  # type: ignore[union-attr]


def test_where_nodes_are_need_not_be_said_and_the_resolved_file_says_it() -> None:
    found = topology({"between": ["bus", "base"], "always": True})
    assert len(found.static_positions()) == 4
    assert Topology.model_validate(found.model_dump(mode="json")) == found


def written(folder: Path, text: str, name: str = "meet.csv", **trace: Any) -> Topology:
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    lines = "".join(f", {key}: {value}" for key, value in trace.items())
    (folder / "topology.yaml").write_text(
        "name: traced\nnodes: [n1, n2, n3]\nradio:\n  model: contacts\n  rate: 1 Mb/s\n"
        f"  trace: {{file: {name}{lines}}}\n  links: [{{between: [n2, n1], rate: 2 Mb/s}}]\n"
    )
    return load_topology(folder / "topology.yaml")


def test_a_trace_with_names(tmp_path: Path) -> None:
    text = "from,to,t_up,t_down\nn1,n2,10,20\nn2,n1,30,40\nn3,n1,5,9\n"
    for name in ("meet.csv", "meet.csv.gz"):
        plan = written(tmp_path, text, name).contact_plan(1, 100.0)
        assert plan is not None
        first, second = plan.links
        assert ((first.a, first.b), first.contacts, first.rate) == (("n2", "n1"), ((10, 20), (30, 40)), 2e6)
        assert ((second.a, second.b), second.contacts, second.rate) == (("n1", "n3"), ((5, 9),), 1e6)
        assert (first.edp, first.eap) == (80 / 3, 10.0)


def test_a_trace_with_numbers_from_another_time_faster(tmp_path: Path) -> None:
    text = "1 2 1000 1040 1 0\n2 1 1030 1100 1 0\n1 9 1000 1001 1 0\n1 3 900 940 1 0\n"
    found = written(tmp_path, text, "meet.dat", first_id=1, unknown="skip", start=1000, speed=10)
    plan = found.contact_plan(1, 100.0)
    assert plan is not None
    (link,) = plan.links
    assert ((link.a, link.b), link.contacts) == (("n2", "n1"), ((0.0, 10.0),))


@pytest.mark.parametrize(
    ("text", "options", "message", "hint"),
    [
        ("n1,n7,1,2", {}, 'meet.csv, line 2: there is no node "n7"', "unknown: skip"),
        ("1,2,1,2", {}, 'meet.csv, line 2: there is no node "1"', "first_id: 0"),
        ("n1,n2,1,2", {"start": 5}, "meet.csv: all contacts are over at start (5 s)", "they end at 2 s"),
        ("n1,n3,1,2", {}, "no schedule, and the trace has no contact of these two", "periodic"),
        (
            "n8,n9,1,2",
            {"unknown": "skip"},
            "meet.csv: holds no contact of nodes of this topology",
            "first_id",
        ),
    ],
)
def test_a_trace_that_does_not_fit(
    tmp_path: Path, text: str, options: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(BadSpec) as raised:
        written(tmp_path, f"from,to,t_up,t_down\n{text}\n", **options)
    problem = raised.value.problems[0]
    assert message in problem.message and hint in problem.hint


def test_the_run_keeps_the_trace_with_it(tmp_path: Path) -> None:
    written(tmp_path, "from,to,t_up,t_down\nn1,n2,1,20\nn3,n2,1,20\n")
    text = "name: x\ntopology: topology.yaml\nbackend: sim\nrouting: none\nduration: 10s\n"
    (tmp_path / "x.yaml").write_text(text + "flows: [{from: n1, to: n2, rate: 8 kb/s}]\n")
    found = load_experiment(tmp_path / "x.yaml")
    copy = tmp_path / "copy"
    for name, content in bundle(found).items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    again = load_experiment(copy / "spec.yaml")
    assert again.topology.contact_plan(1, 10.0) == found.topology.contact_plan(1, 10.0)
    assert isinstance(again.topology.radio, ContactRadio) and again.topology.radio.trace is not None
    assert again.topology.radio.trace.file.path.parent == copy / "trace"


def findings(*links: dict[str, Any], **changes: Any) -> list[str]:
    settings = {
        "name": "x",
        "duration": "60s",
        "topology": document(*links),
        "routing": "none",
        "backend": "sim",
    }
    flows = [{"from": "s1", "to": "base", "rate": "8 kb/s"}]
    found = Experiment.model_validate(settings | {"flows": flows} | changes)
    return [f"{'.'.join(map(str, finding.at))}: {finding.message}" for finding in plan_run(found).findings]


BUS = {"between": ["bus", "base"], "always": True}
FIELD = {"between": ["s1", "bus"], "always": True}


def test_traffic_between_nodes_that_no_chain_of_contacts_connects_is_refused() -> None:
    assert findings(BUS, FIELD) == []
    (problem,) = findings(BUS)
    assert "no chain of contacts connects them" in problem


def test_absurdly_many_contacts_are_refused() -> None:
    often = {"between": ["s1", "bus"], "periodic": {"up": "100 ms", "down": "100 ms"}}
    assert findings(BUS, often, duration="1 h") == []
    (problem,) = findings(BUS, often, duration="100 h")
    assert problem.startswith("topology.radio.links: about 1,800,000 contacts in 360000 s")


@pytest.mark.parametrize(("backend", "word"), [("ssh", "real nodes"), ("core", "CORE's links")])
def test_backends_that_make_no_links_refuse_contacts(backend: str, word: str) -> None:
    assert any(word in problem for problem in findings(BUS, FIELD, backend=backend))


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ({"degrade": {"link": ["s1", "bus"], "by": "3 dB"}}, "has no signal"),
        ({"move": {"node": "s1", "to": [0, 0]}}, "where nodes are changes nothing"),
    ],
)
def test_faults_that_mean_nothing_here(fault: dict[str, Any], word: str) -> None:
    assert any(word in each for each in findings(BUS, FIELD, faults=[{"at": "5s", "for": "5s", **fault}]))


def test_a_hub_has_a_link_to_every_node_that_has_none_of_its_own() -> None:
    found = topology({"between": ["bus", "base"], "times": [[1, 2]]}, hubs=["base"])
    plan = found.contact_plan(seed=1, until=9.0)
    assert plan is not None
    assert {(link.a, link.b): link.contacts for link in plan.links} == {
        ("bus", "base"): ((1.0, 2.0),),
        ("s1", "base"): ((0.0, FOREVER),),
        ("s2", "base"): ((0.0, FOREVER),),
    }
    assert isinstance(found.radio, ContactRadio)
    assert found.radio.neighbours(found.node_names)["base"] == ["bus", "s1", "s2"]
    assert Topology.model_validate(found.model_dump(mode="json")) == found
    with pytest.raises(ValueError, match="there is no node"):
        topology(hubs=["bass"])


def test_names_of_nodes_can_be_counted() -> None:
    def names(*nodes: str) -> tuple[str, ...]:
        return Topology.model_validate({**document(hubs=[nodes[0]]), "nodes": list(nodes)}).node_names

    assert names("b1", "car9..car11") == ("b1", "car9", "car10", "car11")
    assert names("b1", "n08..n10") == ("b1", "n08", "n09", "n10")
    for wrong in ("car3..bus4", "car4..car3", "n1..n20001"):
        with pytest.raises(ValueError, match="does not count from one node to another"):
            names("b1", wrong)
    with pytest.raises(ValueError, match="listed twice"):
        names("car2", "car1..car3")
