"""From the flows of an experiment file to a plan, and everything that can be wrong on the way."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from node_agent.apps.flows.model import Flow, FlowsConfig, OnOff, problems
from orchestrator.apps.flows.examiner import FlowsExaminer
from orchestrator.apps.flows.plan import FlowsPlan, flows_in
from orchestrator.planning.semantics import plan_run
from orchestrator.planning.sweep import cells
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.problems import Finding
from orchestrator.spec.translate import findings_of
from tests.unit.specs import topology

VIDEO = {"name": "video", "from": "n01", "to": "n07", "rate": "256 kb/s", "size": "512 B"}


def document(flows: Any, **changes: Any) -> dict[str, Any]:
    return {"name": "demo", "topology": topology(), "duration": "60s", "flows": flows} | changes


def experiment(flows: Any, folder: Path = Path(), **changes: Any) -> Experiment:
    return Experiment.model_validate(document(flows, **changes), context={FOLDER: folder})


def planned(flows: Any, app: str = "flows", folder: Path = Path(), **changes: Any) -> FlowsPlan:
    run, findings = plan_run(experiment(flows, folder, **changes))
    assert run is not None, findings
    plan = run.apps[app]
    assert isinstance(plan, FlowsPlan)
    return plan


def misread(*flows: dict[str, Any]) -> list[Finding]:
    """What is wrong with the file by itself."""
    whole = document(list(flows))
    with pytest.raises(ValidationError) as caught:
        Experiment.model_validate(whole)
    return findings_of(caught.value, Experiment, whole)


def misplanned(*flows: dict[str, Any], folder: Path = Path(), **changes: Any) -> list[Finding]:
    """What is wrong with it on its topology."""
    run, findings = plan_run(experiment(list(flows), folder, **changes))
    assert run is None
    return findings


def test_a_constant_bit_rate() -> None:
    (flow,) = planned([VIDEO]).flows
    assert flow == Flow("video", "n01", "n07", "udp", 512, 256_000.0, seed="1/flows/video")


def test_what_is_not_said() -> None:
    udp, tcp = planned(
        [
            {"from": "n01", "to": "n02", "rate": "1 Mb/s"},
            {"from": "n02", "to": "n03", "protocol": "tcp"},
        ]
    ).flows
    assert (udp.name, udp.protocol, udp.size) == ("n01-n02", "udp", 512)
    assert (tcp.name, tcp.size, tcp.rate, tcp.paced) == ("n02-n03", 8192, None, False)


def test_on_and_off_start_stop_and_limits() -> None:
    talk = {**VIDEO, "on": "1s", "off": "1.35s", "distribution": "exponential"}
    (flow,) = planned([{**talk, "start": "5s", "stop": "1 min"}]).flows
    assert flow.on_off == OnOff(1.0, 1.35, "exponential")
    assert (flow.start, flow.stop) == (5.0, 60.0)
    file = {"from": "n01", "to": "n02", "protocol": "tcp", "bytes": "10 MB"}
    assert planned([file]).flows[0].bytes == 10_000_000


def test_a_mapping_says_the_same_and_can_be_varied() -> None:
    named = {key: value for key, value in VIDEO.items() if key != "name"}
    assert planned({"video": named}).flows == planned([VIDEO]).flows
    varied = experiment({"video": named}, sweep={"flows.video.rate": ["64 kb/s", "1 Mb/s"]})
    rates = [
        plan.flows[0].rate for cell in cells(varied) if isinstance(plan := cell.run.apps["flows"], FlowsPlan)
    ]
    assert rates == [64_000.0, 1_000_000.0]


def test_pairs_are_drawn_by_the_seed_and_do_not_send_in_step() -> None:
    pairs = {"pairs": 10, "rate": "40 kb/s"}
    first, again, other = (planned([pairs], seed=seed).flows for seed in (1, 1, 2))
    assert first == again != other
    assert [flow.name for flow in first][::9] == ["pair-01", "pair-10"]
    assert len({end for flow in first for end in (flow.source, flow.sink)}) == 20
    assert len({flow.start for flow in first}) == 10
    assert all(0 <= flow.start < 512 * 8 / 40_000 for flow in first)


def test_flows_beside_a_query_and_under_other_names() -> None:
    both = planned([VIDEO], query="synthetic_chain")
    assert both.flows == planned([VIDEO]).flows
    apps = {"load": {"flows": [VIDEO]}, "more": {"flows": [VIDEO]}, "chain": {"query": "synthetic_chain"}}
    whole = {key: value for key, value in document([]).items() if key != "flows"} | {"apps": apps}
    run, findings = plan_run(Experiment.model_validate(whole))
    assert run is not None, findings
    assert set(run.apps) == {"load", "more", "chain"}


def test_nodes_get_their_own_flows_and_traces(tmp_path: Path) -> None:
    (tmp_path / "web.csv").write_text("t,size\n0,100\n")
    web = {"name": "web", "from": "n02", "to": "n01", "protocol": "tcp", "trace": "web.csv"}
    plan = planned([VIDEO, web], folder=tmp_path)
    assert plan.nodes() == ("n01", "n07", "n02")
    at_both = plan.agent_config("n01")
    assert [flow.name for flow in at_both.flows] == ["video", "web"] and not at_both.traces
    assert next(iter(plan.agent_config("n02").traces.values())).sizes == (100,)
    assert plan.agent_config("n20") == FlowsConfig()
    for node in (*plan.nodes(), "n20"):
        assert problems(plan.agent_config(node), node) == []


def test_a_plan_survives_the_manifest() -> None:
    plan = planned([VIDEO, {"pairs": 3, "rate": "1 kb/s", "on": "1s", "off": "2s"}])
    assert flows_in(plan.record()) == plan.flows
    assert flows_in({}) is None and flows_in({"flows": [{"name": 3}]}) is None


def test_faults_name_the_ends_of_flows() -> None:
    plan = planned([VIDEO])
    assert plan.node_of({"flow": "video", "end": "sink"}) == "n07"
    assert plan.node_of({"flow": "video", "end": "source"}) == "n01"
    missing = plan.node_of({"flow": "vidoe", "end": "sink"})
    assert isinstance(missing, Finding) and missing.hint == 'did you mean "video"?'
    assert plan.harmed_by_crash("n07") is None
    harmed = plan.harmed_by_crash("n01")
    assert harmed is not None and "video" in harmed.message
    fault = {"at": "10s", "for": "5s", "silence": {"flow": "video", "end": "source"}}
    assert planned([VIDEO], faults=[fault]).flows == plan.flows


def test_flows_that_can_never_arrive_are_found() -> None:
    (found,) = planned([VIDEO]).cut_off({"n01": 0, "n07": 1}, "the radio reaches 300 m")
    assert found.at == ("flows",) and "video (n01 to n07)" in found.message
    assert planned([VIDEO]).cut_off({"n01": 0, "n07": 0}, "") == []


@pytest.mark.parametrize(
    ("changes", "place", "message"),
    [
        ({"rate": None}, "rate", "missing: a UDP flow needs a rate, or a trace"),
        ({"size": "1473 B"}, "size", "at most 1472 bytes over a radio with an MTU of 1500"),
        ({"size": "41 B"}, "size", "at least 42 bytes"),
        ({"rate": "0 b/s"}, "rate", "too small"),
        ({"to": None}, "to", "missing"),
        ({"pairs": 3}, "from", "the ends of pairs are drawn"),
        ({"on": "1s"}, "off", "missing: a flow that has on has off, too"),
        ({"off": "1s"}, "on", "missing: a flow that has off has on, too"),
        ({"distribution": "exponential"}, "distribution", "has no effect without on and off"),
        ({"start": "5s", "stop": "5s"}, "stop", "before it starts"),
        ({"bytes": "1 MB", "packets": 3}, "packets", "the flow ends after so many bytes already"),
        ({"protocol": "sctp"}, "protocol", "sctp"),
        ({"bandwidth": "1 Mb/s"}, "bandwidth", "unknown key"),
    ],
)
def test_a_flow_that_makes_no_sense(changes: dict[str, Any], place: str, message: str) -> None:
    flow = {key: value for key, value in (VIDEO | changes).items() if value is not None}
    found = [finding for finding in misread(flow) if finding.at[-1] == place]
    assert found and message in found[0].message, misread(flow)
    assert found[0].at == ("flows", 0, place)


def test_names_are_unique() -> None:
    (found,) = misread(VIDEO, {**VIDEO, "to": "n08"})
    assert found.at == ("flows", 1, "name") and 'another flow "video", at flows[0]' in found.message
    nameless = {"from": "n01", "to": "n02", "rate": "1 kb/s"}
    (found,) = misplanned(nameless, nameless)
    assert found.at == ("flows", 1, "name") and "n01-n02" in found.message
    pairs = {"pairs": 2, "rate": "1 kb/s"}
    assert len(misplanned(pairs, pairs)) == 2


def test_ends_must_be_two_nodes_of_the_topology() -> None:
    (found,) = misplanned({**VIDEO, "from": "n1"})
    assert found.at == ("flows", 0, "from")
    assert (found.message, found.hint) == ('there is no node "n1"', 'did you mean "n01"?')
    (found,) = misplanned({**VIDEO, "to": "n01"})
    assert "begins and ends at n01" in found.message
    (found,) = misplanned({"pairs": 601, "rate": "1 kb/s"})
    assert found.message == "there are only 600 pairs of 25 nodes"
    (found,) = misplanned({**VIDEO, "start": "60s"})
    assert found.at == ("flows", 0, "start")


def test_a_bad_trace_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "web.csv").write_text("t,size\n0,100\n0,7\n")
    (found,) = misplanned({"from": "n02", "to": "n01", "trace": "web.csv"}, folder=tmp_path)
    assert found.at == ("flows", 0, "trace")
    assert "web.csv:3: size is 7 bytes" in found.message


def test_there_is_one_at_least() -> None:
    (found,) = misread()
    assert (found.at, found.message) == (("flows",), "there is no flow")


def test_there_are_not_too_many() -> None:
    pairs = [{"name": name, "pairs": 600, "rate": "1 kb/s"} for name in ("a", "b")]
    (found,) = misplanned(*pairs)
    assert found.message == "1200 flows: at most 1000 are run"


class Record:
    def __init__(self, kind: str, packets: int, boot: int = 1) -> None:
        self.kind, self.flow, self.packets, self.boot, self.source_boot = kind, "video", packets, boot, 1


class Whole:
    complete = True


class Broken:
    complete = False


@pytest.mark.parametrize(("received", "beyond"), [(9, 0), (10, 0), (12, 2)])
def test_arrivals_of_what_nobody_sent_are_found(received: int, beyond: int) -> None:
    examiner = FlowsExaminer(planned([VIDEO]).flows)
    examiner.take("n01", Record("flow_sent", 10))
    examiner.take("n07", Record("flow_received", received))
    whole: Any = {"n01": Whole(), "n07": Whole()}
    assert examiner.never_emitted(whole) == ({"n07": beyond} if beyond else {})
    broken: Any = {"n01": Broken(), "n07": Whole()}
    assert examiner.never_emitted(broken) == {}
