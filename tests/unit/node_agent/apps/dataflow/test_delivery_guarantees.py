"""The guarantees of delivery over hundreds of seeded schedules of crashes, broken links and flapping routes.

Each schedule ends with a calm period. A failure names its seed: ``schedule(seed, level)`` replays it.
"""

from pathlib import Path

import pytest

from node_agent.apps.dataflow.delivery.limits import Overflow, Reliability
from node_agent.apps.dataflow.delivery.spill import SpillFile
from tests.unit.delivery_network import Network
from tests.unit.delivery_plans import NOTHING_WRONG, calm_run, outcome, schedule


def assert_at_rest(network: Network, most_items: int, seed: int) -> None:
    assert not network.unfinished(), seed
    # Sets of positions fall to pieces no further than there are items on their way.
    assert network.most_intervals <= 6 * most_items + 40, seed


@pytest.mark.parametrize("part", range(8))
def test_exactly_once(part: int) -> None:
    for seed in range(part * 20, part * 20 + 20):
        case = schedule(seed, Reliability.EXACTLY_ONCE)
        network = case.run()
        assert outcome(network, case.plan, case.count) == NOTHING_WRONG, seed
        assert not network.drops, seed
        assert_at_rest(network, min(case.limits.items, 2 * case.count), seed)
        assert network.most_retained <= 4 * min(case.limits.items, case.count) + 40, seed


def test_at_least_once() -> None:
    repeated = 0
    for seed in range(1000, 1040):
        case = schedule(seed, Reliability.AT_LEAST_ONCE)
        network = case.run()
        found = outcome(network, case.plan, case.count)
        assert not found.lost and not found.wrong, seed
        repeated += len(found.twice)
        assert_at_rest(network, min(case.limits.items, 2 * case.count), seed)
    assert repeated, "nothing was ever repeated: the sink still suppresses duplicates"


def test_spilling_loses_nothing(tmp_path: Path) -> None:
    spilled = 0
    for seed in range(3000, 3025):
        case = schedule(seed, Reliability.EXACTLY_ONCE, Overflow.SPILL)
        network = case.run(make_spill=lambda: SpillFile(tmp_path, 1 << 30))
        assert outcome(network, case.plan, case.count) == NOTHING_WRONG, seed
        assert network.most_retained_in_memory <= case.limits.items, seed
        spilled += network.most_retained > case.limits.items
        assert not network.unfinished(), seed
    assert spilled


def test_a_full_spill_pushes_back(tmp_path: Path) -> None:
    refused = 0
    for seed in range(3000, 3025):
        spills: list[SpillFile] = []

        def tiny(spills: list[SpillFile] = spills) -> SpillFile:
            spills.append(SpillFile(tmp_path, 300))
            return spills[-1]

        case = schedule(seed, Reliability.EXACTLY_ONCE, Overflow.SPILL)
        network = case.run(make_spill=tiny)
        assert outcome(network, case.plan, case.count) == NOTHING_WRONG, seed
        assert not network.unfinished(), seed
        refused += sum(spill.refused for spill in spills)
    assert refused


def test_sources_that_cannot_wait_for_a_full_spill_drop_what_is_in_memory(tmp_path: Path) -> None:
    dropped = 0
    for seed in range(5000, 5025):
        case = schedule(seed, Reliability.EXACTLY_ONCE, Overflow.SPILL)
        network = case.run(slow_source=False, make_spill=lambda: SpillFile(tmp_path, 300))
        found = outcome(network, case.plan, case.count)
        assert not found.twice and not found.unexplained, seed
        assert set(network.drops.values()) <= {"source_buffer_full"}, seed
        assert not network.unfinished(), seed
        dropped += len(network.drops)
    assert dropped


def test_dropping_the_oldest_is_never_silent() -> None:
    dropped = 0
    for seed in range(4000, 4040):
        case = schedule(seed, Reliability.EXACTLY_ONCE, Overflow.DROP_OLDEST)
        network = case.run()
        found = outcome(network, case.plan, case.count)
        assert not found.twice, seed
        if not network.drops:
            assert found == NOTHING_WRONG, seed
        assert not found.unexplained, seed
        assert not network.unfinished(), seed
        dropped += len(network.drops)
    assert dropped


def test_a_source_that_cannot_wait_drops_its_oldest_unsent_tuples() -> None:
    dropped = 0
    for seed in range(5000, 5025):
        case = schedule(seed, Reliability.EXACTLY_ONCE)
        network = case.run(slow_source=False)
        found = outcome(network, case.plan, case.count)
        assert not found.twice, seed
        assert set(network.drops.values()) <= {"source_buffer_full"}, seed
        assert not found.unexplained, seed
        assert not network.unfinished(), seed
        dropped += len(network.drops)
    assert dropped


def test_the_calm_run_is_what_the_operators_say() -> None:
    assert calm_run("filter, map, flat-map", 5).results == {
        ("z", "s/0", tau): (b"s/0:%d.<" % tau, b"s/0:%d.>" % tau) for tau in (1, 2, 4, 5)
    }
    assert calm_run("join by tau", 3).results == {
        ("z", "j", tau): (b"[s=s/0:%d t=t/0:%d]" % (tau, tau),) for tau in (1, 2, 3)
    }
