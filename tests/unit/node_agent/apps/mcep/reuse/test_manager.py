"""The selection manager's tasks: fill, cover, send; and the order in which results are handed on."""

import ast
import random
from pathlib import Path

import pytest

import node_agent.apps.mcep.reuse
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import Event, McepError, Quality
from node_agent.apps.mcep.reuse.batches import Batching, Counted, Timed
from node_agent.apps.mcep.reuse.cells import CellSize
from node_agent.apps.mcep.reuse.checks import sharing_problem
from node_agent.apps.mcep.reuse.incomplete import optimistic
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.manager import Connected, Process, SelectionManager, Settings
from node_agent.apps.mcep.reuse.neighbours import all_of_a_type
from node_agent.apps.mcep.reuse.results import Results, Sent, Share, Sorter
from node_agent.apps.mcep.reuse.similarity import by_cells, by_results
from node_agent.apps.mcep.windows import (
    Consume,
    Count,
    Operator,
    RestrictionWindow,
    Selection,
    Step,
    Window,
    filter_operator,
)
from tests.unit.node_agent.apps.mcep.reuse.selections import (
    EVERYWHERE,
    MUTUAL,
    S1,
    S2,
    S3,
    atoms,
    event,
    inputs,
)

pytestmark = pytest.mark.unit

SIXTY = Rules(Quality(0.6, 0.6))


def managing(settings: Settings, **destinations: tuple[str, ...]) -> SelectionManager:
    manager = SelectionManager(settings)
    for name, brokers in destinations.items():
        manager.connect(Connected(name, EVERYWHERE, brokers))
    return manager


def two(settings: Settings) -> SelectionManager:
    return managing(settings, Q2=("b1",), Q3=("b1", "b2"))


def give(manager: SelectionManager, operator: str, number: int, numbers: set[int]) -> list[Process]:
    manager.fill(operator, number, inputs(sorted(numbers)))
    return manager.close(operator, number)


def made(each: Process) -> Event:
    """An output that depends on the selection's atomic events."""
    used = frozenset().union(*(one.event.provenance for one in each.inputs))
    return Event(each.inputs[-1].event.t, each.key[1], each.key[0], "mean", Point(0, 0), provenance=used)


def test_results_of_one_selection_go_to_all_it_covers_once_for_a_broker() -> None:
    manager = two(Settings(SIXTY, "similarity"))
    for operator, number, numbers in (("Q3", 0, S1), ("Q3", 1, S2), ("Q2", 0, S1), ("Q2", 1, S3)):
        assert give(manager, operator, number, numbers) == []
    decision = manager.cover(MUTUAL)
    assert dict(decision.groups) == {
        ("Q2", 0): (("Q2", 0), ("Q3", 0), ("Q3", 1)),
        ("Q2", 1): (("Q2", 1),),
    }
    first, second = decision.process
    sent = dict(manager.finished(first.key, [made(first)]))
    two_thirds = Share("Q3", 1, 2 / 3, atoms(S2))
    assert sent["b1"].shares == (Share("Q2", 0), Share("Q3", 0), two_thirds)
    assert sent["b2"].shares == (Share("Q3", 0), two_thirds)
    assert {len(each.outputs) for each in sent.values()} == {1}
    assert manager.finished(second.key, []) == [] and manager.undecided() == 0
    assert manager.heartbeat() == [("b1", Results(empty=(("Q2", 1),)))]
    assert manager.heartbeat() == [] and manager.cover(MUTUAL).process == ()


def test_no_reuse_processes_all() -> None:
    manager = two(Settings(SIXTY, "none"))
    for number in range(3):
        give(manager, "Q2", number, S1)
        give(manager, "Q3", number, S1)
    decision = manager.cover(MUTUAL)
    assert len(decision.process) == 6 and decision.comparisons == 0


def test_a_timed_batch_waits_until_all_its_selections_are_there() -> None:
    manager = two(Settings(SIXTY, batching=Timed(10.0)))
    for operator in ("Q2", "Q3"):
        give(manager, operator, 0, S1)
        give(manager, operator, 1, {5, 6, 11})
    assert manager.cover(MUTUAL).groups == (), "nobody said how far operators are"
    manager.progress("Q2", 12.0)
    manager.progress("Q3", 9.0)
    manager.progress("Q3", 8.0)
    assert [len(keys) for _, keys in manager.cover(MUTUAL).groups] == [1]
    manager.progress("Q2", 25.0)
    manager.progress("Q3", 25.0)
    assert sorted(len(keys) for _, keys in manager.cover(MUTUAL).groups) == [1, 2]


def test_incomplete_selections_are_covered_early_and_the_rest_of_their_events_is_ignored() -> None:
    rules = Rules(Quality(0.8, 0.8), share=optimistic)
    manager = two(Settings(rules, early=True))
    give(manager, "Q3", 0, S2)
    manager.fill("Q2", 0, inputs([1, 2]), missing=1)
    decision = manager.cover(MUTUAL, {"Q3": 1.0})
    assert decision.groups == ((("Q3", 0), (("Q3", 0), ("Q2", 0))),)
    (process,) = decision.process
    manager.finished(process.key, [made(process)])
    manager.fill("Q2", 0, inputs([4]))
    assert manager.close("Q2", 0) == [] and manager.undecided() == 0


def test_an_incomplete_selection_that_stands_for_others_is_processed_when_it_is_complete() -> None:
    manager = two(Settings(Rules(Quality(0.8, 0.8), share=optimistic), early=True))
    manager.fill("Q3", 0, inputs([1, 2]), missing=1)
    assert manager.cover(MUTUAL).groups == (), "alone and incomplete: it is decided later"
    manager.fill("Q2", 0, inputs([1, 2]), missing=1)
    assert manager.cover(MUTUAL, {"Q3": 1.0}).process == ()
    manager.fill("Q3", 0, inputs([3]))
    (process,) = manager.close("Q3", 0)
    assert process.covered == (("Q3", 0), ("Q2", 0)) and len(process.inputs) == 3


def test_selections_without_events_are_not_shared() -> None:
    manager = two(Settings(Rules(Quality(0.0, 0.0))))
    for operator in ("Q2", "Q3"):
        give(manager, operator, 0, set())
    process = manager.cover(MUTUAL).process
    assert [each.covered for each in process] == [(("Q2", 0),), (("Q3", 0),)]
    (sent,) = manager.finished(("Q2", 0), [event(1)])
    assert sent[1].shares == (Share("Q2", 0),)


def test_when_an_operator_leaves_those_it_was_to_process_for_are_decided_again() -> None:
    manager = two(Settings(SIXTY))
    give(manager, "Q3", 0, S1)
    give(manager, "Q2", 0, S1)
    (process,) = manager.cover(MUTUAL, {"Q3": 1.0}).process
    manager.disconnect("Q3")
    assert manager.finished(process.key, [made(process)]) == []
    assert [each.key for each in manager.cover(MUTUAL).process] == [("Q2", 0)]


def test_an_operator_that_leaves_gets_no_results() -> None:
    manager = two(Settings(SIXTY))
    give(manager, "Q3", 0, S1)
    give(manager, "Q2", 0, S1)
    (process,) = manager.cover(MUTUAL, {"Q3": 1.0}).process
    manager.disconnect("Q2")
    sent = manager.finished(process.key, [made(process)])
    assert {share.operator for _, results in sent for share in results.shares} == {"Q3"}


def test_what_cannot_be_is_refused() -> None:
    manager = two(Settings(SIXTY))
    with pytest.raises(McepError, match="Q2 is connected already"):
        manager.connect(Connected("Q2", EVERYWHERE, ()))
    give(manager, "Q2", 0, S1)
    with pytest.raises(McepError, match="selection 0 of Q2 is closed"):
        manager.fill("Q2", 0, inputs([4]))
    with pytest.raises(McepError, match="was not to be processed"):
        manager.finished(("Q2", 0), [])
    with pytest.raises(McepError, match="heuristics are none, similarity, neighbour, not best"):
        Settings(heuristic="best")
    with pytest.raises(McepError, match="alone in its batch"):
        Settings(early=True, batching=Counted(2))
    with pytest.raises(McepError, match="say how large its cells are"):
        Settings(Rules(estimate=by_cells))


def test_what_results_would_have_been_without_reuse_is_handed_up_the_graph() -> None:
    """The next operator is compared by what it wants, and used by what it got."""
    leaves = two(Settings(SIXTY, "similarity"))
    give(leaves, "Q3", 0, S2)
    give(leaves, "Q2", 0, S3)
    sent = [each for one in leaves.cover(MUTUAL).process for each in leaves.finished(one.key, [made(one)])]
    sorter = Sorter({"Q2": 0, "Q3": 0})
    received = {
        operator: got for broker, each in sent if broker == "b1" for operator, _, got in sorter.receive(each)
    }
    assert received["Q2"][0].event == received["Q3"][0].event
    reused = received["Q3"][0]
    assert reused.wanted == atoms(S2) and reused.similarity == pytest.approx(2 / 3)
    roots = managing(Settings(Rules(Quality(0.7, 0.7)), "similarity"), R2=("b1",), R3=("b1",))
    for root, leaf in (("R2", "Q2"), ("R3", "Q3")):
        roots.fill(root, 0, received[leaf])
        roots.close(root, 0)
    groups = roots.cover({"R2": {"R3"}, "R3": {"R2"}}).groups
    assert groups == ((("R3", 0), (("R3", 0), ("R2", 0))),), "both got the same, and only one wanted that"


@pytest.mark.parametrize("estimate", [by_cells, by_results])
def test_other_annotations_go_the_same_way(estimate: object) -> None:
    rules = Rules(Quality(0.6, 0.6), estimate=by_cells if estimate is by_cells else by_results)
    manager = two(Settings(rules, cell=CellSize(100.0, 0.5)))
    give(manager, "Q3", 0, S1)
    give(manager, "Q2", 0, S1)
    (process,) = manager.cover(MUTUAL).process
    sent = manager.finished(process.key, [made(process)])
    (other,) = [share for _, each in sent for share in each.shares if share.operator != process.key[0]][:1]
    if estimate is by_cells:
        assert other.wanted_cells == {(0, 0, 0): 1, (0, 0, 2): 1, (0, 0, 4): 1} == sent[0][1].used_cells
    assert process.covered == (("Q2", 0), ("Q3", 0))


@pytest.mark.parametrize("batching", [Counted(1), Counted(3), Timed(5.0)])
@pytest.mark.parametrize("heuristic", ["similarity", "neighbour"])
def test_every_selection_gets_results_once_and_in_order_over_delayed_messages(
    heuristic: str, batching: Batching
) -> None:
    rng = random.Random(11)
    for _ in range(25):
        names = [f"q{n}" for n in range(rng.randint(2, 5))]
        manager = managing(
            Settings(Rules(Quality(0.4, 0.4)), heuristic, batching), **dict.fromkeys(names, ("b",))
        )
        numbers = dict.fromkeys(names, 0)
        sent: list[Sent] = []
        processed = 0
        for second in range(30):
            for name in names:
                if rng.random() < 0.6:
                    numbers_of = {n for n in range(second, second + 4) if rng.random() < 0.7} or {second}
                    give(manager, name, numbers[name], numbers_of)
                    numbers[name] += 1
                manager.progress(name, second + (1000.0 if second == 29 else 0.0))
            for each in manager.cover(all_of_a_type(dict.fromkeys(names, "mean"))).process:
                processed += 1
                outputs = [made(each)] if rng.random() < 0.8 else []
                sent += manager.finished(each.key, outputs)
        sent += manager.heartbeat()
        assert manager.undecided() == 0 and processed < sum(numbers.values())
        told = sum(len(each.shares) + len(each.empty) for _, each in sent)
        assert told == sum(numbers.values())
        sorter = Sorter(dict.fromkeys(names, 0))
        messages = [each for _, each in sent] + [each for _, each in sent[::3]]
        rng.shuffle(messages)
        seen: dict[str, list[int]] = {name: [] for name in names}
        for message in messages:
            for operator, number, got in sorter.receive(message):
                assert got
                seen[operator].append(number)
        for name, found in seen.items():
            full = {share.number for _, each in sent for share in each.shares if share.operator == name}
            assert found == sorted(full)
        assert sorter.waits_for() == {}


def test_a_sorter_says_for_what_it_waits_and_refuses_strangers() -> None:
    sorter = Sorter({"a": 5}, ahead=10)
    assert sorter.receive(Results((event(1),), (Share("a", 7),))) == []
    assert sorter.waits_for() == {"a": 5}
    assert sorter.receive(Results(empty=(("a", 5), ("a", 3)))) == []
    assert [number for _, number, _ in sorter.receive(Results((event(0),), (Share("a", 6),)))] == [6, 7]
    with pytest.raises(McepError, match="nobody here waits for results of b"):
        sorter.receive(Results(empty=(("b", 0),)))
    with pytest.raises(McepError, match="too far ahead"):
        sorter.receive(Results(empty=(("a", 18),)))


def test_operators_that_cannot_share() -> None:
    def correlate(selection: Selection) -> Step:
        return Step()

    window = (Window("w", "s", Count(1)),)
    named = Operator("o", window, RestrictionWindow(1.0), correlate, consumption=Consume("named"))
    here = Operator("o", window, RestrictionWindow(1.0), correlate, reuse="contextual")
    assert "names what it consumes" in str(sharing_problem(named))
    assert "looks at the epoch" in str(sharing_problem(here))
    assert sharing_problem(filter_operator("o", "s", lambda event: True, "t")) is None


def test_reuse_stands_on_values_only() -> None:
    """Brokers will use it, so it must not know them."""
    values = {"geometry", "model", "windows", "reuse"}
    for file in Path(next(iter(node_agent.apps.mcep.reuse.__path__))).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("node_agent"):
                module = str(node.module).removeprefix("node_agent.apps.mcep.")
                assert module.split(".")[0] in values, f"{file.name} imports {node.module}"
