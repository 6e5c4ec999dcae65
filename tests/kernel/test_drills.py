"""A few of the drills (``benchmarks/drills.py``), which plays hundreds, in namespaces."""

from pathlib import Path

import pytest

from benchmarks.drilling.campaign import Order, play

CHOSEN = ("kill-8", "interrupt_twice-6", "kill_helper-0", "full_disk-4", "reused_pid-1", "power_loss-27")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_drill_finds_nothing(tmp_path: Path, chosen: str) -> None:
    kind, _, number = chosen.partition("-")
    played = play(Order(kind, int(number), 1), tmp_path)
    assert played.found.clean, (played.notes, played.found)
