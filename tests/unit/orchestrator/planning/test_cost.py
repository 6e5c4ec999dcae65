"""The longest cells go first; finished cells teach how long the others take."""

import pytest

from orchestrator.planning.cost import Costs, first_guess
from orchestrator.planning.sweep import cells
from tests.unit.orchestrator.lifecycle.test_run import experiment


def test_longer_runs_are_guessed_to_take_longer() -> None:
    planned = cells(experiment(sweep={"duration": ["10s", "100s", "30s"]}))
    costs = Costs.of(planned)
    assert costs.longest_first([1, 2, 3]) == [2, 3, 1]
    assert first_guess(planned[1]) > first_guess(planned[2])


def test_cells_of_the_same_guess_keep_their_order() -> None:
    costs = Costs.of(cells(experiment(sweep={"seed": [1, 2, 3]})))
    assert costs.longest_first([3, 1, 2]) == [1, 2, 3]


def test_finished_cells_correct_the_guess() -> None:
    rates = {"query.operators.camera.rate": [2, 8, 32], "seed": [1, 2, 3]}
    costs = Costs.of(cells(experiment(sweep=rates)))  # 1, 2, 3: rate 2; 4, 5, 6: rate 8; 7, 8, 9: rate 32
    for number, seconds in ((1, 2.0), (4, 4.0), (7, 20.0), (2, 2.0), (5, 4.0), (8, 20.0)):
        costs.learn(number, seconds)
    assert costs.longest_first([3, 6, 9]) == [9, 6, 3]
    assert 2.0 < costs.expected(3) < 4.0 < costs.expected(6) < costs.expected(9) < 20.0
    assert costs.left([3, 6], {9: 1000.0}, 2) == pytest.approx(
        (costs.expected(3) + costs.expected(6)) / 2, rel=0.3
    )
    assert costs.left([9], {}, 100) == costs.expected(9)
    assert costs.left([], {}, 2) == 0.0


def test_thousands_of_cells_are_learnt_from_in_little_time() -> None:
    numbers = range(1, 10_001)
    costs = Costs(dict.fromkeys(numbers, 1.0), {number: (("k", str(number % 7)),) for number in numbers})
    for number in numbers:
        costs.learn(number, 1.0 + number % 7)
    assert costs.expected(6) > 3 * costs.expected(7)
