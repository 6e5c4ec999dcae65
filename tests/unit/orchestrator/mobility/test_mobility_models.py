"""Every model: same seed, same path; inside the area, no faster than allowed, no jumps, as long as asked."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from math import hypot, log, pi

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BadInput
from orchestrator.mobility.gauss_markov import gauss_markov_path
from orchestrator.mobility.group import group_paths
from orchestrator.mobility.legs import MIN_SPEED
from orchestrator.mobility.random_walk import random_walk_path
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.static import grid_paths, scattered_path, static_path
from orchestrator.mobility.statistics import mean_speed
from orchestrator.mobility.steady_state import mean_leg, stationary_mean_speed, steady_state_path
from orchestrator.model.trace import Area, Path, Span, Trace, Waypoint

Model = Callable[[random.Random, Area, Span, float], Path]

MODELS: dict[str, Model] = {
    "random_waypoint": lambda rng, area, speed, until: random_waypoint_path(rng, area, speed, (0, 3), until),
    "steady_state": lambda rng, area, speed, until: steady_state_path(rng, area, speed, (0, 3), until),
    "walk_by_time": lambda rng, area, speed, until: random_walk_path(rng, area, speed, 7.0, until),
    "walk_by_distance": lambda rng, area, speed, until: random_walk_path(
        rng, area, speed, 90.0, until, by="distance"
    ),
    "gauss_markov": lambda rng, area, speed, until: gauss_markov_path(
        rng, area, until, alpha=0.8, mean_speed=speed[1] / 2, speed_deviation=speed[1] / 4, max_speed=speed[1]
    ),
    "gauss_markov_steer": lambda rng, area, speed, until: gauss_markov_path(
        rng,
        area,
        until,
        alpha=0.3,
        mean_speed=speed[1] / 2,
        speed_deviation=speed[1] / 2,
        max_speed=speed[1],
        border="steer",
    ),
}

areas = st.tuples(st.floats(20, 3000), st.floats(20, 3000))
speeds = st.tuples(st.floats(0.1, 30), st.floats(0.1, 30)).map(lambda pair: (min(pair), max(pair)))
seeds = st.integers(0, 2**32)


def assert_sound(path: Path, area: Area, fastest: float, until: float) -> None:
    assert path[0].t == 0 and path[-1].t >= until
    for _, x, y in path:
        assert 0 <= x <= area[0] and 0 <= y <= area[1]
    for a, b in pairwise(path):
        assert a.t < b.t
        assert hypot(b.x - a.x, b.y - a.y) <= fastest * (b.t - a.t) + 1e-6


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=40, deadline=None)
@given(areas, speeds, seeds, st.floats(1, 300))
def test_a_path_is_sound(model: str, area: Area, speed: Span, seed: int, until: float) -> None:
    path = MODELS[model](random.Random(f"mobility/{seed}/a"), area, speed, until)
    assert_sound(path, area, speed[1], until)


@pytest.mark.parametrize("model", ["random_waypoint", "steady_state"])
@settings(max_examples=40, deadline=None)
@given(areas, speeds, seeds)
def test_waypoint_legs_are_never_slower_than_the_lowest_speed(
    model: str, area: Area, speed: Span, seed: int
) -> None:
    path = MODELS[model](random.Random(seed), area, speed, 100.0)
    legs = [(a, b) for a, b in pairwise(path) if (a.x, a.y) != (b.x, b.y)]
    assert all(hypot(b.x - a.x, b.y - a.y) >= speed[0] * (b.t - a.t) - 1e-6 for a, b in legs)


@settings(max_examples=40, deadline=None)
@given(areas, speeds, speeds, st.floats(0.01, 0.45), seeds)
def test_group_members_stay_near_their_leader(
    area: Area, speed: Span, member_speed: Span, share: float, seed: int
) -> None:
    radius = share * min(area)
    paths = group_paths(seed, [["a", "b", "c"], ["d"]], area, speed, (0, 2), radius, member_speed, 60.0)
    for path in paths.values():
        assert_sound(path, area, speed[1] + member_speed[1], 60.0)
    trace = Trace(paths)
    for t in range(60):
        lead, *members = (trace.position(node, t) for node in "abc")
        assert all(hypot(x - lead[0], y - lead[1]) <= radius + 1e-6 for x, y in members)


def test_groups_do_not_depend_on_each_other() -> None:
    def paths(groups: list[list[str]]) -> dict[str, Path]:
        return group_paths(1, groups, (500.0, 500.0), (1, 2), (0, 1), 50.0, (0.5, 1), 100.0)

    few, many = paths([["a", "b"]]), paths([["x", "y"], ["a", "b", "c"]])
    assert few["a"] == many["a"] and few["b"] == many["b"]


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_path_whatever_the_hash_seed(model: str) -> None:
    code = (
        "import random, sys; from tests.unit.orchestrator.mobility.test_mobility_models import MODELS; "
        f"print(MODELS[{model!r}](random.Random('mobility/1/n1'), (300.0, 200.0), (1.0, 3.0), 50.0))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    here = MODELS[model](random.Random("mobility/1/n1"), (300.0, 200.0), (1.0, 3.0), 50.0)
    assert out.stdout.strip() == str(here)
    assert here != MODELS[model](random.Random("mobility/2/n1"), (300.0, 200.0), (1.0, 3.0), 50.0)


AREA, SPEED, PAUSE = (1000.0, 600.0), (0.5, 19.5), (0.0, 60.0)
NODES = 1500


def test_random_waypoint_decays_and_its_steady_state_does_not() -> None:
    """Uniform starts: speed begins near (low + high) / 2 and decays; stationary starts: flat, at theory."""
    theory = stationary_mean_speed(AREA, SPEED, PAUSE)
    plain = Trace(
        {str(i): random_waypoint_path(random.Random(f"{i}"), AREA, SPEED, PAUSE, 700.0) for i in range(NODES)}
    )
    steady = Trace(
        {str(i): steady_state_path(random.Random(f"{i}"), AREA, SPEED, PAUSE, 700.0) for i in range(NODES)}
    )
    assert mean_speed(plain, 0, 5) > 1.8 * theory
    windows = [mean_speed(steady, t, t + 100) for t in range(0, 700, 100)]
    # A window's standard error is about 2 % with this many nodes.
    assert windows == pytest.approx([theory] * 7, rel=0.07)
    assert mean_speed(steady, 0, 1) == pytest.approx(theory, rel=0.12)


def test_steady_state_positions_keep_their_distribution() -> None:
    """Denser in the middle from the first moment on, as after a long time."""
    steady = Trace(
        {str(i): steady_state_path(random.Random(f"{i}"), AREA, SPEED, PAUSE, 400.0) for i in range(NODES)}
    )

    def in_the_middle(t: float) -> float:
        inside = [250 <= x <= 750 and 150 <= y <= 450 for x, y in steady.at(t).values()]
        return sum(inside) / NODES

    assert in_the_middle(0) > 0.3
    assert in_the_middle(0) == pytest.approx(in_the_middle(400), abs=0.05)


def test_the_mean_leg_of_a_rectangle() -> None:
    assert mean_leg((1.0, 1.0)) == pytest.approx(0.521405, abs=1e-6)
    # A very thin rectangle is a line: a third of its length.
    assert mean_leg((1000.0, 1.0)) == pytest.approx(1000 / 3, rel=1e-4)
    rng = random.Random("legs")
    drawn = [
        hypot(rng.uniform(0, 300) - rng.uniform(0, 300), rng.uniform(0, 900) - rng.uniform(0, 900))
        for _ in range(40_000)
    ]
    assert mean_leg((300.0, 900.0)) == pytest.approx(sum(drawn) / len(drawn), rel=0.02)


def test_stationary_mean_speed_without_pause_is_harmonic() -> None:
    assert stationary_mean_speed((1200.0, 1200.0), (4, 6), (0, 0)) == pytest.approx(2 / log(1.5))
    assert stationary_mean_speed((1200.0, 1200.0), (5, 5), (0, 0)) == pytest.approx(5)


def test_a_lowest_speed_of_zero_is_raised_for_random_waypoint_and_refused_for_its_steady_state() -> None:
    path = random_waypoint_path(random.Random(1), (100.0, 100.0), (0.0, 2.0), (0.0, 0.0), 1e4)
    assert all(hypot(b.x - a.x, b.y - a.y) >= MIN_SPEED * (b.t - a.t) * 0.99 for a, b in pairwise(path))
    with pytest.raises(BadInput, match="above 0"):
        steady_state_path(random.Random(1), (100.0, 100.0), (0.0, 2.0), (0.0, 0.0), 10.0)


def test_a_walk_keeps_its_density_uniform() -> None:
    trace = Trace(
        {str(i): random_walk_path(random.Random(f"{i}"), AREA, (5, 15), 20.0, 300.0) for i in range(NODES)}
    )
    left = sum(x < 250 for x, _ in trace.at(300.0).values()) / NODES
    assert left == pytest.approx(0.25, abs=0.05)


def test_a_walk_by_distance_travels_that_far_between_turns() -> None:
    path = random_walk_path(random.Random(3), (1e6, 1e6), (1, 9), 40.0, 200.0, by="distance")
    assert [hypot(b.x - a.x, b.y - a.y) for a, b in pairwise(path)] == pytest.approx([40.0] * (len(path) - 1))


def test_gauss_markov_without_randomness_is_a_straight_line_mirrored_at_walls() -> None:
    path = gauss_markov_path(
        random.Random(1),
        (100.0, 50.0),
        60.0,
        alpha=0.5,
        mean_speed=5.0,
        speed_deviation=0.0,
        max_speed=5.0,
        direction=0.0,
        direction_deviation=0.0,
    )
    assert {round(w.y, 9) for w in path} == {round(path[0].y, 9)}
    assert {0.0, 100.0} <= {w.x for w in path}


def test_gauss_markov_keeps_its_mean_speed_and_remembers_with_alpha() -> None:
    def turning(alpha: float) -> float:
        path = gauss_markov_path(
            random.Random(5),
            (1e6, 1e6),
            2000.0,
            alpha=alpha,
            mean_speed=10.0,
            speed_deviation=2.0,
            max_speed=30.0,
            direction=pi / 3,
        )
        assert mean_speed(Trace({"a": path}), 0, 2000) == pytest.approx(10.0, rel=0.1)
        speeds = [hypot(b.x - a.x, b.y - a.y) for a, b in pairwise(path)]
        return sum(abs(a - b) for a, b in pairwise(speeds)) / len(speeds)

    assert turning(0.95) < turning(0.5) < turning(0.0)


def test_steering_keeps_nodes_from_the_border() -> None:
    def near_border(border: str) -> float:
        trace = Trace(
            {
                str(i): gauss_markov_path(
                    random.Random(f"{i}"),
                    (500.0, 500.0),
                    300.0,
                    alpha=0.7,
                    mean_speed=5.0,
                    speed_deviation=1.0,
                    max_speed=10.0,
                    border="steer" if border == "steer" else "reflect",
                )
                for i in range(100)
            }
        )
        at = [p for t in range(100, 300, 20) for p in trace.at(t).values()]
        return sum(min(x, y, 500 - x, 500 - y) < 25 for x, y in at) / len(at)

    assert near_border("steer") < 0.5 * near_border("reflect")


def test_static_nodes_stay() -> None:
    assert static_path((3.0, 4.0)) == (Waypoint(0.0, 3.0, 4.0),)
    assert Trace({"a": static_path((3.0, 4.0))}).position("a", 1e9) == (3.0, 4.0)
    ((t, x, y),) = scattered_path(random.Random(1), (10.0, 20.0))
    assert t == 0 and 0 <= x <= 10 and 0 <= y <= 20


def test_a_grid_is_filled_row_by_row() -> None:
    positions = {
        node: path[0][1:] for node, path in grid_paths(list("abcde"), 10.0, origin=(5.0, 1.0)).items()
    }
    assert positions == {"a": (5, 1), "b": (15, 1), "c": (25, 1), "d": (5, 11), "e": (15, 11)}
    assert grid_paths(["a", "b"], 10.0, columns=1)["b"] == (Waypoint(0.0, 0.0, 10.0),)
    assert grid_paths([], 10.0) == {}


RNG = random.Random(1)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: random_waypoint_path(RNG, (0.0, 10.0), (1, 2), (0, 1), 10.0), "area 0 m × 10 m"),
        (lambda: steady_state_path(RNG, (10.0, float("nan")), (1, 2), (0, 1), 10.0), "area 10 m × nan m"),
        (lambda: steady_state_path(RNG, (10.0, 10.0), (3, 2), (0, 1), 10.0), "speed from 3 to 2"),
        (lambda: random_walk_path(RNG, (10.0, 10.0), (1, 2), 0.0, 10.0), "leg 0"),
        (lambda: random_walk_path(RNG, (10.0, 10.0), (0, 2), 1.0, 10.0), "above 0"),
        (lambda: grid_paths(["a"], -1.0), "spacing -1"),
        (lambda: grid_paths(["a"], 1.0, columns=0), "0 columns"),
        (
            lambda: group_paths(1, [["a"]], (10.0, 10.0), (1, 2), (0, 1), 5.0, (1, 1), 10.0),
            "group radius 5 m: a group does not fit",
        ),
        (
            lambda: gauss_markov_path(
                RNG, (9.0, 9.0), 9.0, alpha=1.5, mean_speed=1, speed_deviation=0, max_speed=2
            ),
            "alpha 1.5",
        ),
        (
            lambda: gauss_markov_path(
                RNG, (9.0, 9.0), 9.0, alpha=0.5, mean_speed=3, speed_deviation=0, max_speed=2
            ),
            "speed from 3 to 2",
        ),
    ],
)
def test_nonsense_is_refused(attempt: Callable[[], object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        attempt()
