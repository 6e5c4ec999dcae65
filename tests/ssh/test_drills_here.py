"""A few of the drills (``benchmarks/drills.py``), which plays many more, on real nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.drilling.campaign import LAB_NODES, Order, play
from tests.ssh.drill import TEST_S
from tests.ssh.lab import Lab, laboratory

CHOSEN = ("node_kill-10", "node_helper-3", "power_loss_here-0", "full_here-0", "lost_before_collection-0")
pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]


@pytest.fixture(scope="module")
def small_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with laboratory(tmp_path_factory.mktemp("small"), LAB_NODES) as lab:
        yield lab


@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_drill_finds_nothing(tmp_path: Path, small_lab: Lab, chosen: str) -> None:
    kind, _, number = chosen.partition("-")
    played = play(Order(kind, int(number), 1), tmp_path, small_lab)
    small_lab.tidy()
    assert played.found.clean, (played.notes, played.found)
