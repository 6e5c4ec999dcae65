"""What the figures of reuse are measured by, on a few vehicles without SUMO."""

import pytest

from benchmarks.mcep.crowd import Crowd
from benchmarks.reuse import covering
from benchmarks.reuse.figure_files import figure
from benchmarks.reuse.neighbouring import Selecting, joined_disparity, predicted
from benchmarks.reuse.playing import everyone, play
from benchmarks.reuse.traffic import SWITCH_S, Traffic, Window
from benchmarks.reuse_speed import measured, scene
from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.reuse.batches import Timed
from node_agent.apps.mcep.reuse.incomplete import optimistic
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.reuse.neighbours import Reach
from node_agent.apps.mcep.reuse.similarity import Candidate
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.windows import Consume, Count, Full, Operator, RestrictionWindow
from node_agent.apps.mcep.windows import Window as SelectionWindow
from tests.unit.node_agent.apps.mcep.driving import Recorded, all_at_once

pytestmark = pytest.mark.unit


def few(seconds: float = 12.0) -> Traffic:
    """Vehicles that stand in a row, 20 m apart."""
    drives = {f"c{n}": Drive([Sample(0, 20.0 * n, 0, 9.0), Sample(99, 20.0 * n, 0, 9.0)]) for n in range(40)}
    return Traffic(Crowd(drives, Box(0, 0, 800, 10), seconds))


def test_selections_are_those_of_the_execution_environment() -> None:
    given, window = few(SWITCH_S), Window(5, 2)
    begin, end, region = list(given.epochs("c3", 200.0))[-1]
    mine = [
        {str(each.seq) for each in one.events}
        for one in given.selections("c3", 200.0, window)
        if one.events[0].t >= begin
    ]
    inside = [
        each._replace(source=str(each.seq))
        for each in given.between(begin, end)
        if isinstance(each.place, Point) and region.x0 <= each.place.x <= region.x1
    ]
    correlate = Recorded()
    windows = (SelectionWindow("w", "speed", Count(5), begin="oldest"),)
    consume = Consume("first", 2)
    operator = Operator("o", windows, RestrictionWindow(9.0), correlate, Full("w"), consumption=consume)
    all_at_once(operator, inside, begin, end + 1)
    assert mine and correlate.seen == mine


def test_more_is_shared_with_lower_thresholds_and_nothing_without_reuse() -> None:
    given = few()
    names = given.drivers(6)
    made = [each for who in names for each in given.selections(who, 400.0, Window(10, 5))]
    whom = everyone(given, names, 400.0)
    rows = [
        play(made, covering.threshold(value), "neighbour", whom, Timed(4.0)).row()
        for value in (0.2, 0.5, 0.9)
    ]
    shares = [row["processed"] for row in rows]
    assert shares == sorted(shares) and shares[0] < shares[-1]
    assert rows[0]["selections"] == len(made)
    nothing = play(made, covering.threshold(0.2), "none", whom).row()
    assert (nothing["processed"], nothing["similarity"], nothing["comparisons"]) == (1.0, 1.0, 0)


def test_neighbours_are_selected_as_vehicles_move() -> None:
    given = few()
    selecting = Selecting(given, given.drivers(4), Reach(1, 10_000.0, 10_000.0), 5000.0)
    neighbours, priority = selecting.at(0.0)
    assert sum(map(len, neighbours.values())) == 8 and set(priority) == set(neighbours)


def test_disparity_joins_what_each_query_got_of_both_kinds() -> None:
    west, east = Box(0, 0, 10, 10), Box(5, 0, 15, 10)
    atoms = [frozenset({("crowd", n)}) for n in range(2)]
    places = {0: Point(2, 1), 1: Point(12, 1)}
    slow = Candidate("b/slow", 0, 0.0, 1.0, atoms[0], atoms[0], region=west)
    fast = Candidate("a/fast", 0, 0.0, 1.0, atoms[1], atoms[1], region=east)
    wanted = Candidate("a/slow", 0, 0.0, 1.0, atoms[0], atoms[0], region=east)
    assert joined_disparity([(slow, wanted), (fast, fast)], ["a"], places) == 0.5


def test_predictions_decide_about_every_selection() -> None:
    given = few()
    made = {who: given.selections(who, 400.0, Window(40, 20)) for who in given.drivers(3)}
    every = sum(map(len, made.values()))
    careful = predicted(given, made, Settings(covering.threshold(0.5)), 5000.0)
    hopeful = predicted(given, made, Settings(Rules(share=optimistic), early=True), 5000.0)
    assert careful.selections == hopeful.selections == every
    assert hopeful.processed <= careful.processed < every


def test_speed_is_measured_against_the_same_selections() -> None:
    row = measured(scene(4, 200), 2, 5)
    assert row["selections"] == 200 and 0 < row["processed"] < 1 and row["throughput_ratio"] > 0


def test_figures_are_read_from_their_files() -> None:
    """What they say is what the documented results were measured with."""
    by_threshold = figure("5.4")
    assert (by_threshold.cars, by_threshold.vehicles, by_threshold.seconds) == (25, 400, 20.0)
    assert by_threshold.edges == [500.0, 2000.0, 5000.0] and by_threshold.batching == Timed(10.0)
    assert by_threshold.thresholds == [0.2, 0.35, 0.5, 0.65, 0.8] and by_threshold.window == Window(30, 10)
    costs = figure("5.5")
    assert costs.numbers == [5, 10, 25, 50] and costs.thresholds == [0.35, 0.5, 0.6]
    few = figure("5.7")
    assert (few.cars, few.edge, few.window) == (5, 5000.0, Window(300, 50))
    assert (figure("5.6").cars, figure("5.6").threshold) == (15, 0.5) and figure("5.8").cars == 20
    assert "experiments/mcep/fig5-4.yaml" in by_threshold.parameters().values()
