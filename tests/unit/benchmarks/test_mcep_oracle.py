"""Random walks of a query's interest, smooth and rough, against the offline oracle (T-36)."""

import pytest

from benchmarks.mcep.network import Network
from benchmarks.mcep.worlds import world
from benchmarks.mcep_oracle import WRONG, compared, row
from node_agent.apps.mcep.delivery import Delivered

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", range(20))
def test_t36_a_walk_delivers_what_the_oracle_expects(seed: int) -> None:
    found = row(world(seed, rough=seed % 5 == 4))
    assert not any(found[key] for key in WRONG), found


STRICT = [seed for seed in range(100, 112) if world(seed).query.policy.is_strict]


@pytest.mark.parametrize("seed", STRICT)
def test_t36_suppression_changes_nothing_but_what_is_sent(seed: int) -> None:
    plain, suppressed = (row(world(seed, suppression=each)) for each in (False, True))
    assert not any(found[key] for found in (plain, suppressed) for key in WRONG), (plain, suppressed)
    assert suppressed["delivered"] == plain["delivered"]
    assert suppressed["processed"] <= plain["processed"]


def test_without_markers_results_mix_regions() -> None:
    caught = [row(world(seed, baseline=True))["inconsistent"] for seed in range(12)]
    assert sum(each > 0 for each in caught) > 2


def test_the_oracle_finds_what_is_missing_made_up_or_late() -> None:
    made = next(each for each in map(world, range(100)) if _has_results(each.seed))
    outcome = Network(made).run()
    assert not any(compared(made, outcome).values())
    first, second, *rest = outcome.delivered
    outcome.delivered = [second, *rest]
    assert compared(made, outcome)["missing"] == 1
    strange = first.event._replace(t=first.event.t + 0.5)
    outcome.delivered = [first, Delivered(first.epoch, strange, False), second, *rest]
    assert compared(made, outcome)["surplus"] == 1
    outcome.delivered = [*rest, first, second]
    assert compared(made, outcome)["out_of_order"] > 0
    far = first.event._replace(provenance=frozenset(next(iter(e.provenance)) for e in made.events))
    outcome.delivered = [Delivered(first.epoch, far, False), second, *rest]
    assert compared(made, outcome)["inconsistent"] == 1


def _has_results(seed: int) -> bool:
    found = row(world(seed))
    return (
        bool(found["delivered"] > 20)
        and found["completeness"] == "weak"
        and found["order"] == "spatiotemporal"
    )
