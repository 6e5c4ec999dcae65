"""`rove explain` and `rove replay` on a run whose costs are known, and the replay of real decisions."""

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.dataflow.events import RouteDecision, TupleEmitted, TupleReceived
from node_agent.apps.dataflow.model.decision import Candidate, Rule, Threshold
from node_agent.apps.dataflow.switching.decision import View, decide
from node_agent.apps.dataflow.switching.known_costs import costs_from_link_state
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.apps.dataflow.switching.route import Route
from node_agent.model.cost_graph import CostGraph
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.apps.dataflow.decisions.explain import Dead, explain, faults_at
from orchestrator.apps.dataflow.decisions.history import History, Recorded, read_history
from orchestrator.apps.dataflow.decisions.reasons import reason
from orchestrator.apps.dataflow.decisions.replay import replay
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import RunWriter, ns
from tests.unit.rove_process import rove

COSTS = [(3.0, 4.0), (4.0, 3.5), (8.0, 3.0), (8.0, 3.0), (inf, inf), (3.0, 5.0)]
"""What the ways through detect/0 and detect/1 cost the source, at 2 s, 4 s, 6 s, …"""


def network(ways: tuple[float, ...], t_s: float) -> CostGraph:
    """The source on n1, detectors on n2, n3, …, one apart from each other, the sink on n9."""
    costs = {f"n{i + 2}": {"n9": 1.0} for i in range(len(ways))}
    costs["n1"] = {f"n{i + 2}": way - 1.0 for i, way in enumerate(ways) if way < inf}
    return CostGraph(costs, "etx", "olsr", ns(t_s) - ns(0.25))


def record(
    writer: RunWriter, rule: Rule, ways: list[tuple[float, ...]], *, first_s: float = 2.0, boot: int = 1
) -> None:
    plan = writer.plan()
    writer.record("n1", first_s - 2.0, AgentStart("0", "virtual", ("source/0",)), boot)
    route = Route()
    for number, costs in enumerate(ways):
        t_s = first_s + 2.0 * number
        known = costs_from_link_state(network(costs, t_s), plan, plan.replicas[0])
        route, events = decide(View(plan, plan.replicas[0], known, rule, {}, ns(t_s)), route)
        for event in events:
            writer.record("n1", t_s, event, boot)
    writer.record("n1", first_s + 2.0 * len(ways), AgentStop("end of run"), boot)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    writer = RunWriter(tmp_path, "faces", "r1")
    record(writer, Rule(threshold=Threshold(0.25, relative=True)), list(COSTS))
    return RunDirectory(writer.write())


def test_decisions_are_told_in_the_orchestrators_time(tmp_path: Path, run: RunDirectory) -> None:
    """Whatever the node's own clock said; an outage that the orchestrator recorded is then where it was."""
    writer = RunWriter(tmp_path / "apart", "faces", "r1")
    record(writer, Rule(threshold=Threshold(0.25, relative=True)), list(COSTS))
    writer.own_clocks({"n1": (3600.0, 50.0)}, error_ns=0)
    apart, shared = read_history(RunDirectory(writer.write())), read_history(run)
    assert abs(apart.zero_ns - shared.zero_ns) <= 1
    for ours, theirs in zip(apart.series[0], shared.series[0], strict=True):
        assert abs(ours.t_ns - theirs.t_ns) <= 1
        age_ns = ours.t_ns - ours.decision.taken_ns
        assert age_ns == pytest.approx(theirs.t_ns - theirs.decision.taken_ns, rel=1e-4)


def test_one_absurd_time_does_not_move_the_zero(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, "faces", "r1")
    record(writer, Rule(threshold=Threshold(0.25, relative=True)), list(COSTS), first_s=1_790_000_012.0)
    writer.record("n2", 1e-9, AgentStart("0", "real", ("detect/0",)))
    directory = RunDirectory(writer.write())
    known = json.loads(directory.manifest.read_text())
    window = {"measure_from_ns": ns(1_790_000_015), "measure_until_ns": ns(1_790_000_100)}
    directory.manifest.write_text(json.dumps({**known, **window, "clock": "real"}))
    history = read_history(directory)
    # It is no more than the run's length, 129 s, before the window.
    assert 0 <= history.seconds(history.series[0][0].t_ns) < 129


def text(*arguments: str, root: Path) -> str:
    ended = rove(root, *arguments)
    assert ended.returncode == 0, ended.stderr
    return "\n".join(line.rstrip() for line in ended.stdout.splitlines())


EXPLAINED = """\
run r1 at 9 s

source/0 on n1 → detect: detect/1 on n3, for 3.0 s, since 6.0 s
  detect/1 was still the cheapest way to the sinks (3.00); next was detect/0 (8.00).
  replica   node  link  to the sinks  queue
  detect/0  n2    7.00          8.00      –
* detect/1  n3    2.00          3.00      –
  Decided at 8.0 s by shortest_path, threshold 25%; costs are etx from olsr, 0.2 s old then.
  Last switch at 6.0 s, from detect/0: detect/1 was cheaper than detect/0 by 5.00 (3.00 against 8.00); \
it had to be by more than 2.00 (25% of what was paid).
    before, at 4.0 s: detect/0 4.00, detect/1 3.50
    then: detect/0 8.00, detect/1 3.00"""


def test_explain_in_words(run: RunDirectory) -> None:
    assert text("explain", "r1", "--at", "9s", root=run.path.parents[1]) == EXPLAINED


def test_without_a_time_the_switches_are_listed(run: RunDirectory) -> None:
    root = run.path.parents[1]
    listed = text("explain", "r1", root=root)
    assert listed.startswith("run r1: 4 switches, first choices included\n")
    for expected in ("(start)", "no route", "6.0 s", "detect/1 was cheaper than detect/0 by 5.00"):
        assert expected in listed
    document = json.loads(text("explain", "r1", "--json", root=root))
    assert [(each["at_s"], each["old"], each["new"]) for each in document["switches"]] == [
        (2.0, None, "detect/0"),
        (6.0, "detect/0", "detect/1"),
        (10.0, "detect/1", None),
        (12.0, None, "detect/0"),
    ]
    newest = json.loads(text("explain", "r1", "--most", "1", "--json", root=root))
    assert newest["switches"] == document["switches"][-1:]
    assert newest["left_out"] == 3
    of_operator = json.loads(text("explain", "r1", "--operator", "sink", "--json", root=root))
    assert of_operator["switches"] == []
    for wrong, message in (
        (("--operator", "sinc"), "no operator 'sinc'"),
        (("--replica", "detect/7"), "detect/7"),
        (("--at", "9s", "--operator", "sink"), "with --at, name a replica"),
    ):
        ended = rove(root, "explain", "r1", *wrong)
        assert ended.returncode == 2 and message in ended.stderr


def test_a_way_that_carries_nothing_is_said_to(tmp_path: Path) -> None:
    """The source goes on, but nothing of it arrives at detect/1 from 7 s on."""
    writer = RunWriter(tmp_path, "faces", "r1")
    record(
        writer, Rule(), [(4.0, 9.0), (4.0, 9.0), (8.0, 3.0), (8.0, 3.0), (8.0, 3.0), (8.0, 3.0), (8.0, 3.0)]
    )
    for tau in range(1, 150):
        t_s = 2.0 + tau / 10
        writer.record("n1", t_s, TupleEmitted("source/0", "source/0", tau, 100))
        if t_s < 7.0:
            to, node = ("detect/0", "n2") if t_s < 6.0 else ("detect/1", "n3")
            writer.record(node, t_s + 0.01, TupleReceived(to, "source/0", "source/0", tau, 100))
    root = RunDirectory(writer.write()).path.parents[1]
    assert "carries nothing" not in text("explain", "r1", "--at", "9s", root=root)
    at_14 = text("explain", "r1", "--at", "14s", root=root)
    said = "This way carries nothing: no tuple has arrived over it for 7.1 s, although source/0 had input."
    assert said in at_14
    assert "It carried nothing from 6.9 to" in " ".join(text("explain", "r1", root=root).split())
    (first, second) = json.loads(text("explain", "r1", "--json", root=root))["switches"]
    assert first["idle"] is None and second["idle"]["had_input"] is True


REPLAYED = """\
run r1: static with threshold 25%, replayed beside shortest_path with threshold 25%, as run
replica                      switches  no route  mean cost  above best  same choice  time at
source/0 → detect  as run           2     2.0 s       3.20        0.10               \
detect/0 6.0 s, detect/1 4.0 s
                   replayed         0     2.0 s       5.20        2.10          50%  detect/0 12.0 s
Only the choices are replayed. Had they been made, queues and the load on the network would have been \
others, and so the costs: run the experiment with the policy to know what it achieves."""


def test_replay_as_a_table(run: RunDirectory) -> None:
    assert text("replay", "r1", "--policy", "static", root=run.path.parents[1]) == REPLAYED


def test_both_speak_json(run: RunDirectory) -> None:
    root = run.path.parents[1]
    explained = json.loads(text("explain", "faces", "--at", "11", "--json", root=root))
    (decision,) = explained["decisions"]
    assert (decision["to"], decision["switched"]["old"]) == (None, "detect/1")
    assert decision["why"] == "No replica of detect had a way to the sinks: the stream waits for one."
    options = ("--policy", "shortest_path", "--threshold", "0", "--json")
    (compared,) = json.loads(text("replay", "latest", *options, root=root))["compared"]
    assert compared["run"]["seconds"] == {"detect/0": 6.0, "detect/1": 4.0}
    assert compared["replayed"]["seconds"] == {"detect/0": 4.0, "detect/1": 6.0}
    assert (compared["run"]["switches"], compared["replayed"]["switches"]) == (2, 2)
    assert compared["agreement"] == pytest.approx(10 / 12)
    assert compared["replayed"]["regret"] == 0.0


@pytest.mark.parametrize(
    ("at_s", "why"),
    [
        (2.0, "detect/0 was the cheapest way to the sinks (3.00); next was detect/1 (4.00)."),
        (
            5.0,
            "detect/1 was not cheaper by enough (3.50 against 4.00): "
            "a switch had to gain more than 1.00 (25% of what was paid).",
        ),
        (13.0, "detect/0 was the cheapest way to the sinks (3.00); next was detect/1 (5.00)."),
    ],
)
def test_reasons(run: RunDirectory, at_s: float, why: str) -> None:
    (found,) = explain(read_history(run), at_s)
    assert found.why == why


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("static", "The policy is static: the first replica, whatever it costs."),
        (
            "round_robin",
            "Round robin over the 2 replicas with a way to the sinks: detect/0 50%, detect/1 50%.",
        ),
        (
            "random",
            "Drawn for each tuple, with equal chances, from the 2 replicas with a way to the sinks: "
            "detect/0 50%, detect/1 50%.",
        ),
        (
            "weighted",
            "Drawn for each tuple, by 1/cost^2, from the 2 replicas with a way to the sinks: "
            "detect/0 20%, detect/1 80%.",
        ),
        (
            "power_of_two",
            "For each tuple two are drawn from the 2 replicas with a way to the sinks, and the shorter queue "
            "is taken: detect/0 50%, detect/1 50%.",
        ),
        (
            "backpressure",
            "detect/1 had the greatest (tuples here + 1 − tuples there)/link^2, with 0 here.",
        ),
    ],
)
def test_every_policy_says_what_it_goes_by(tmp_path: Path, policy: str, why: str) -> None:
    writer = RunWriter(tmp_path, "faces", "r1")
    record(writer, Rule(policy), [(4.0, 9.0), (8.0, 4.0)])
    (found,) = explain(read_history(RunDirectory(writer.write())), 5.0)
    assert found.why == why


def test_a_restarted_agent_begins_anew(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, "faces", "r1")
    record(writer, Rule(), [(3.0, 4.0), (3.0, 4.0)])
    record(writer, Rule(), [(4.0, 3.0), (3.0, 4.0)], first_s=12.0, boot=2)
    history = read_history(RunDirectory(writer.write()))
    (found,) = explain(history, 13.0)
    assert (found.to, found.since_s, found.switched) == ("detect/1", 12.0, None)
    (compared,) = replay(history, "shortest_path").compared
    assert (compared.run.switches, compared.agreement) == (1, 1.0)


def test_a_killed_agent_is_not_spoken_of_as_if_it_lived(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, "faces", "r1")
    record(writer, Rule(), [(3.0, 4.0), (3.0, 4.0)])
    record(writer, Rule(), [(4.0, 3.0), (3.0, 4.0)], first_s=12.0, boot=2)
    for t_s, action, node in [(5, "crash", "n1"), (5.5, "silence", "n9"), (11, "restart", "n1")]:
        writer.fault(t_s, action, node)
    writer.fault(15, "crash", "n1")
    run = RunDirectory(writer.write())
    told = text("explain", "r1", "--at", "6s", "--replica", "source/0", root=run.path.parents[1])
    assert told.splitlines() == [
        "run r1 at 6 s",
        "fault: agent killed on n1 (source/0), from 5.0 s until 11.0 s",
        "fault: radio silent on n9 (sink/0), from 5.5 s to the end",
        "",
        "source/0 on n1 → detect: its agent was dead, killed at 5.0 s, back at 11.0 s",
        "  Its last decision before that, at 4.0 s: detect/0 on n2. "
        "detect/0 was still the cheapest way to the sinks (3.00); next was detect/1 (4.00).",
    ]
    history = read_history(run)
    back, killed_again = Dead(killed_s=5.0, back_s=11.0), Dead(killed_s=15.0, back_s=None)
    for at_s, dead in [(4.5, None), (6.0, back), (11.5, back), (13.0, None), (15.5, killed_again)]:
        (found,) = explain(history, at_s)
        assert found.dead == dead
    assert [fault.from_s for fault in faults_at(history, 11.0)] == [5.5]


def test_torn_and_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, "faces", "r1")
    record(writer, Rule(), list(COSTS))
    lines = writer.lines("n1")
    decisions = [index for index, line in enumerate(lines) if b"route_decision" in line]
    lines[decisions[1]] = lines[decisions[1]][:80]
    lines[-1] = lines[-1][:30] + b"!"
    history = read_history(RunDirectory(writer.write()))
    assert [history.seconds(each.t_ns) for each in history.series[0]] == [2.0, 6.0, 8.0, 10.0, 12.0]


def test_bad_questions_get_one_clear_error(run: RunDirectory, tmp_path: Path) -> None:
    root = run.path.parents[1]
    empty = RunWriter(tmp_path, "empty", "r2")
    empty.record("n1", 0.0, AgentStart("0", "virtual", ()))
    empty.write()
    for arguments, said in [
        (
            ("explain", "r1", "--at", "99s"),
            "99 s is outside the run, which has records from 0 s to 14.0 s so far",
        ),
        (
            ("explain", "r1", "--at", "1s"),
            "no source had decided anything by 1 s: the first decision came at 2.0 s",
        ),
        (
            ("explain", "r1", "--at", "soon"),
            '--at: "soon" is not a duration: write it like 120s, 2 min or 500 ms',
        ),
        (("explain", "r1", "--at", "5s", "--replica", "sink/0"), "sink/0 is a sink: it sends to nobody"),
        (
            ("explain", "r1", "--at", "5s", "--replica", "sorce/0"),
            "run r1 has no replica 'sorce/0': did you mean \"source/0\"?",
        ),
        (
            ("explain", "r2", "--at", "5s"),
            "run r2 has no decisions recorded: nothing was routed in it, or not yet",
        ),
        (("replay", "r1", "--policy", "statik"), "there is no policy 'statik': did you mean \"static\"?"),
        (
            ("replay", "r1", "--policy", "static", "--threshold", "much"),
            "--threshold: 'much' is neither a number nor a share like 10%",
        ),
        (
            ("replay", "r9", "--policy", "static"),
            f"no run 'r9' under {root}: rove status lists what there is",
        ),
    ]:
        ended = rove(root, *arguments)
        assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"{said}\n")


def test_a_sweep_is_asked_for_one_of_its_runs(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(json.dumps({"members": []}))
    with pytest.raises(BadInput, match="is a sweep: name one of its runs"):
        read_history(RunDirectory(tmp_path))


WAY = st.sampled_from((inf, 2.0, 3.0, 3.1, 4.0, 9.0))


@given(
    st.sampled_from(list(POLICIES)),
    st.sampled_from((Threshold(), Threshold(1.0), Threshold(0.3, relative=True))),
    st.lists(st.tuples(WAY, WAY, WAY), min_size=1, max_size=25),
)
@settings(deadline=None)
def test_replaying_the_policy_that_was_run_gives_what_was_run(
    policy: str, threshold: Threshold, ways: list[tuple[float, ...]]
) -> None:
    """From the record alone: so nothing that a decision depends on is missing in it."""
    history = recorded(Rule(policy, threshold, seed=3), ways)
    (compared,) = replay(history, policy).compared
    assert compared.agreement == pytest.approx(1.0)
    assert compared.replayed == compared.run
    for other in POLICIES:
        (against,) = replay(history, other).compared
        assert 0 <= against.agreement <= 1.0 + 1e-9
        for course in (against.run, against.replayed):
            assert course.regret is None or course.regret >= -1e-9


def recorded(rule: Rule, ways: list[tuple[float, ...]]) -> History:
    """What ``read_history`` would read of such a run."""
    plan = RunWriter(Path(), "faces", "r1", k=3).plan()
    series: list[Any] = []
    route = Route()
    for number, costs in enumerate(ways):
        t_ns = ns(2.0 * number)
        known = costs_from_link_state(network(costs, 2.0 * number), plan, plan.replicas[0])
        route, events = decide(View(plan, plan.replicas[0], known, rule, {}, t_ns), route)
        made = (event for event in events if isinstance(event, RouteDecision))
        series += [Recorded(t_ns, "n1", 1, len(series), decision) for decision in made]
    return History("r1", plan, 0, ns(2.0 * len(ways)), (tuple(series),))


ids = st.sampled_from(["detect/0", "detect/1", "detect/2"])
costs = st.none() | st.floats(allow_nan=False, allow_infinity=False)
candidates = st.builds(
    Candidate, ids, costs, costs, costs, st.none() | st.integers(), st.just(()), st.booleans()
)
decisions = st.builds(
    RouteDecision,
    st.just("source/0"),
    st.just("detect"),
    st.sampled_from([*POLICIES, "another"]),
    st.none() | ids,
    st.none() | ids,
    st.lists(candidates, max_size=3).map(tuple),
    st.dictionaries(ids, st.floats(-1, 2), max_size=3),
    costs,
    st.floats(-10, 10),
    st.booleans(),
    st.floats(-5, 5),
    st.integers(0, 9),
    st.integers(),
    st.booleans(),
    st.booleans(),
    st.just("etx"),
    st.just("olsr"),
    st.integers(0, 9),
)


@given(decisions)
@settings(max_examples=1000)
def test_any_decision_that_a_node_may_record_has_a_reason(decision: RouteDecision) -> None:
    assert reason(decision)
