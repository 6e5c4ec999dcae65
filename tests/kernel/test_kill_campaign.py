"""One short schedule of the campaign of kills (``benchmarks/kill_campaign.py``), which plays many."""

from pathlib import Path

import pytest

from benchmarks.kill_campaign import play, summary


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_agents_that_are_killed_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    seed = 3
    result = play(seed, tmp_path, kills=3, tuples=120)
    assert result.kills == 3
    assert result.clean, summary(seed, result)
