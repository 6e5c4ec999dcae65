"""Changes of a network by hand: checked like faults, carried out, recorded with who did them, taken back."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from node_agent.telemetry.metrics import Sample
from orchestrator.backends.by_hand import ByHand
from orchestrator.backends.fault_injector import ActiveFaults, inject_faults
from orchestrator.cli.set import wanted_by
from orchestrator.errors import BadInput, RoveError
from orchestrator.lifecycle.examination import agent_starts
from orchestrator.planning.fault_effects import Effect
from orchestrator.planning.faults import PlannedFault, Step
from orchestrator.planning.planned import PlannedRun
from orchestrator.radio.changes import UNCHANGED, AirChanges, Weakened
from orchestrator.runs.events import EventLog, describe
from orchestrator.runs.outages import interventions
from orchestrator.spec.backends import Traits
from tests.unit.orchestrator.planning.test_faults import faulty
from tests.unit.specs import planned


class Nodes:
    def __init__(self) -> None:
        self.done: list[Any] = []
        self.air = UNCHANGED
        self.restarted = asyncio.Event()
        self.delay = self.slow_restart = 0.0
        self.broken = False
        self.active: ActiveFaults

    def now_ns(self) -> int:
        return 7

    async def crash(self, node: str) -> None:
        self.done.append(("crash", node))

    async def restart(self, node: str) -> None:
        await asyncio.sleep(self.slow_restart)
        self.done.append(("restart", node))
        self.restarted.set()

    async def change_air(self, changes: AirChanges) -> None:
        await asyncio.sleep(self.delay)
        if self.broken:
            raise RoveError("no answer")
        self.air = changes

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        return ()


Scenario = Callable[[ByHand, Nodes], Awaitable[None]]


def played(
    directory: Path,
    scenario: Scenario,
    traits: Traits = Traits(changes_air=True),  # noqa: B008
    run: PlannedRun | None = None,
    why_not: str = "",
) -> list[dict[str, Any]]:
    """Returns the events."""
    found = run or planned(faulty())

    async def play() -> None:
        nodes = Nodes()
        active = nodes.active = ActiveFaults(nodes, found.apps, EventLog(directory / "events.jsonl"))
        by_hand = ByHand(active, found.experiment.topology, found.apps, traits, lambda: why_not)
        await scenario(by_hand, nodes)
        await by_hand.close()

    asyncio.run(play())
    file = directory / "events.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_what_is_done_holds_until_it_is_restored_and_is_recorded(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        assert await by_hand.set(wanted_by("silence", ["a"]), "ada") == "radio silent on a"
        assert await by_hand.set(wanted_by("cut", ["s", "b"]), "ada") == "link cut: s – b"
        assert await by_hand.set(wanted_by("move", ["z", "10", "20 m"]), "ada") == "moved: z to (10, 20) m"
        expected = AirChanges(("a",), links=(Weakened("s", "b"),), places={"z": (10.0, 20.0)})
        assert nodes.air == expected
        assert await by_hand.set(wanted_by("restore", ["b", "s"]), "bob") == "restored: link cut: s – b"
        assert nodes.air.links == ()
        text = await by_hand.set(wanted_by("restore", []), "bob")
        assert text == "restored: radio silent on a; moved: z to (10, 20) m"
        assert nodes.air == UNCHANGED

    events = played(tmp_path, scenario)
    assert [(e["action"], e["node"], e["by"]) for e in events] == [
        ("silence", "a", "ada"),
        ("cut", "s – b", "ada"),
        ("move", "z to (10, 20) m", "ada"),
        ("mend", "s – b", "bob"),
        ("unsilence", "a", "bob"),
        ("release", "z to (10, 20) m", "bob"),
    ]
    assert describe(events[0]) == "fault: silence a (by hand: ada)"
    done = interventions(events)
    assert len(done) == 3 and done[0].startswith("radio silent on a, by ada at 20")


def test_it_can_take_itself_back_after_a_time(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        done = await by_hand.set(wanted_by("crash", ["op1/0"], "50 ms"), "ada")
        assert done == "agent killed on a, for 0.05 s"
        async with asyncio.timeout(10):
            await nodes.restarted.wait()
        assert nodes.done == [("crash", "a"), ("restart", "a")]

    assert [e["action"] for e in played(tmp_path, scenario)] == ["crash", "restart"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (wanted_by("silence", ["q"]), 'silence.node: there is no node "q"'),
        (wanted_by("cut", ["s", "s"]), 'cut: "s" has no link to itself'),
        (wanted_by("move", ["s", "here", "0"]), "move.to"),
        (wanted_by("move", ["s", "nan", "0"]), 'move.to: "nan" is not a length'),
        (wanted_by("move", ["s", "5000", "0"]), "outside the area"),
        (wanted_by("degrade", ["s", "a", "10 dB"]), "within its range a disc receives everything"),
        (wanted_by("partition", ["s,a,b,z"]), "nobody is left on the other side"),
        (wanted_by("partition", ["w=s", "e=s,z"]), "s is in w as well"),
        (wanted_by("crash", ["s"]), "s has the camera"),
        (wanted_by("crash", ["op1/in_use"]), "no replica is in use"),
        (wanted_by("restore", ["a"]), "nothing that was done by hand to a holds"),
        (wanted_by("restore", ["q"]), "there is no node 'q'"),
        ({"explode": 1}, "explode: unknown key"),
        ({"restore": 5}, "expected a list of nodes"),
    ],
)
def test_what_cannot_be_done_gets_one_clear_error(
    tmp_path: Path, wanted: dict[str, Any], message: str
) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        with pytest.raises(BadInput) as refused:
            await by_hand.set(wanted, "ada")
        assert message in str(refused.value)
        assert nodes.air == UNCHANGED and nodes.done == []

    events = played(tmp_path, scenario)
    assert [event["kind"] for event in events] in ([], ["fault_missed"])


def test_what_holds_already_is_not_done_twice(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        await by_hand.set(wanted_by("silence", ["a"]), "ada")
        with pytest.raises(BadInput, match="radio silent on a already: restore it first"):
            await by_hand.set(wanted_by("silence", ["a"]), "ada")

    played(tmp_path, scenario)


def test_where_the_air_is_not_emulated_only_agents_can_be_killed(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        with pytest.raises(BadInput, match="the air is not emulated here"):
            await by_hand.set(wanted_by("silence", ["a"]), "ada")
        await by_hand.set(wanted_by("crash", ["a"]), "ada")

    played(tmp_path, scenario, traits=Traits())


def test_a_network_that_is_not_up_is_not_changed(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        with pytest.raises(BadInput, match="not up now"):
            await by_hand.set(wanted_by("silence", ["a"]), "ada")

    played(tmp_path, scenario, why_not="the network is not up now")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("move a 1 2", {"move": {"node": "a", "to": [1.0, 2.0]}}),
        ("degrade a b 10dB", {"degrade": {"link": ["a", "b"], "by": "10dB"}}),
        ("partition a,b", {"partition": ["a", "b"]}),
        ("partition a,b c", {"partition": {"group 1": ["a", "b"], "group 2": ["c"]}}),
        ("partition w=a,b e=c", {"partition": {"w": ["a", "b"], "e": ["c"]}}),
        ("crash op/1", {"crash": {"operator": "op", "replica": 1}}),
        ("silence op/in_use", {"silence": {"operator": "op", "in_use": True}}),
    ],
)
def test_the_words_of_the_command_line_are_those_of_the_file(words: str, wanted: dict[str, Any]) -> None:
    action, *rest = words.split()
    assert wanted_by(action, rest) == wanted
    assert wanted_by(action, rest, "5s") == {**wanted, "for": "5s"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("explode a", "there is no action 'explode'"),
        ("move a", "rove set RUN move NODE X Y"),
        ("cut a b c", "rove set RUN cut NODE NODE"),
        ("partition", "rove set RUN partition"),
        ("partition w=a w=b", "two groups 'w'"),
        ("crash op/x", "neither a node nor a replica"),
    ],
)
def test_words_that_mean_nothing_are_answered_with_the_usage(words: str, message: str) -> None:
    action, *rest = words.split()
    with pytest.raises(BadInput, match=message):
        wanted_by(action, rest)


def test_two_restores_and_an_end_by_time_may_overlap(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        for node in "abs":
            await by_hand.set(wanted_by("silence", [node]), "ada")
        nodes.delay = 0.01
        restores = [by_hand.set(wanted_by("restore", []), who) for who in ("ada", "bob")]
        assert all(said.startswith("restored: ") for said in await asyncio.gather(*restores))
        assert nodes.air == UNCHANGED

    events = played(tmp_path, scenario)
    assert sorted(e["node"] for e in events if e["action"] == "unsilence") == ["a", "b", "s"]


def test_a_partition_can_be_restored_by_its_nodes(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        await by_hand.set(wanted_by("partition", ["a,b"]), "ada")
        assert (await by_hand.set(wanted_by("restore", ["b", "a"]), "ada")).startswith("restored: network")
        assert nodes.air == UNCHANGED

    played(tmp_path, scenario)


def test_nothing_is_changed_while_the_run_ends(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        await by_hand.close()
        for words in (["crash", "a"], ["restore"]):
            with pytest.raises(BadInput, match="about to end"):
                await by_hand.set(wanted_by(words[0], words[1:]), "ada")
        assert nodes.done == []

    assert played(tmp_path, scenario) == []


def test_a_change_that_fails_halfway_is_recorded_and_can_be_tried_again(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        nodes.broken = True
        with pytest.raises(RoveError, match="no answer"):
            await by_hand.set(wanted_by("silence", ["a"]), "ada")
        nodes.broken = False
        await by_hand.set(wanted_by("silence", ["a"]), "ada")
        assert nodes.air.silent == ("a",)

    events = played(tmp_path, scenario)
    assert [e.get("failed") for e in events] == [True, None]
    assert len(interventions(events)) == 2, "it may have changed something"


def test_an_agent_that_is_killed_twice_is_started_again_once(tmp_path: Path) -> None:
    async def scenario(by_hand: ByHand, nodes: Nodes) -> None:
        planned_one = PlannedFault("0", "crash", Effect("a", "a"))
        await nodes.active.begin(planned_one)
        await by_hand.set(wanted_by("crash", ["a"]), "ada")
        await nodes.active.end("0")
        assert nodes.done == [("crash", "a")]
        await by_hand.set(wanted_by("restore", ["a"]), "ada")
        assert nodes.done == [("crash", "a"), ("restart", "a")]

    events = played(tmp_path, scenario)
    assert agent_starts(events) == {"a": 2}
    assert [e["action"] for e in events] == ["crash", "crash", "restart"]


def test_a_fault_that_waits_for_another_says_how_late_it_is(tmp_path: Path) -> None:
    def silence(node: str) -> PlannedFault:
        return PlannedFault(node, "silence", Effect(node, air=AirChanges(silent=(node,))))

    async def scenario(_: ByHand, nodes: Nodes) -> None:
        nodes.delay = 0.3
        steps = [Step(0.0, True, silence("a")), Step(0.05, True, silence("b"))]
        await inject_faults(steps, 0.0, nodes.active)

    first, second = played(tmp_path, scenario)
    assert "late_s" not in first
    assert second["node"] == "b" and 0.2 <= second["late_s"] < 20


def test_a_slow_restart_delays_only_what_is_about_the_same_node(tmp_path: Path) -> None:
    def crash(key: str, node: str) -> PlannedFault:
        return PlannedFault(key, "crash", Effect(node, node))

    async def scenario(_: ByHand, nodes: Nodes) -> None:
        nodes.slow_restart = 0.4
        first, again, other = crash("0", "a"), crash("1", "a"), crash("2", "b")
        steps = [Step(0.0, True, first), Step(0.02, False, first), Step(0.05, True, again)]
        steps += [Step(0.06, True, other), Step(0.1, False, again)]
        await inject_faults(steps, 0.0, nodes.active)
        kills = [("crash", "a"), ("crash", "b"), ("restart", "a"), ("crash", "a"), ("restart", "a")]
        assert nodes.done == kills

    events = played(tmp_path, scenario)
    assert [(e["action"], e["node"]) for e in events] == [
        ("crash", "a"),
        ("crash", "b"),
        ("restart", "a"),
        ("crash", "a"),
        ("restart", "a"),
    ]
    assert ["late_s" in event for event in events] == [False, False, False, True, True]


def test_a_fault_that_fails_ends_the_others(tmp_path: Path) -> None:
    async def scenario(_: ByHand, nodes: Nodes) -> None:
        nodes.broken, nodes.slow_restart = True, 30.0
        down = PlannedFault("0", "crash", Effect("a", "a"))
        silence = PlannedFault("1", "silence", Effect("b", air=AirChanges(silent=("b",))))
        steps = [Step(0.0, True, down), Step(0.01, False, down), Step(0.02, True, silence)]
        with pytest.raises(RoveError, match="no answer"):
            await inject_faults(steps, 0.0, nodes.active)

    assert [e["action"] for e in played(tmp_path, scenario)] == ["crash", "silence"]
