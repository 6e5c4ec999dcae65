"""Operators that move while events flow, with and without kills, against the run without migration (T-29)."""

from dataclasses import replace

import pytest

from benchmarks.migration.world import Network, with_kill, world
from benchmarks.migration_oracle import WRONG, compared, row
from node_agent.migration.live import old_host
from node_agent.migration.live.execution import Execution
from node_agent.migration.live.messages import Ack, Deliver, Effect, Sent
from node_agent.migration.live.neighbours import Downstream
from node_agent.migration.live.site import Site
from node_agent.migration.live.values import Order

pytestmark = [pytest.mark.unit, pytest.mark.timeout(120)]


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_t29_a_migration_changes_nothing_at_the_sinks(seed: int) -> None:
    found = row(seed)
    assert not any(found[key] for key in WRONG), found


def test_runs_have_what_they_are_to_show() -> None:
    rows = [row(seed) for seed in range(1001, 1031, 3)]
    assert sum(each["migrations"] for each in rows) > 5
    assert sum(bool(each["killed"]) for each in rows) > 5


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = (Network(world(1000)).run() for _ in range(2))
    assert (one.delivered, one.notes, one.messages) == (other.delivered, other.notes, other.messages)


def goes_wrong(seeds: range) -> bool:
    return any(any(row(seed)[key] for key in WRONG) for seed in seeds)


def test_the_oracle_sees_outputs_that_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: Downstream, sender: str, first: int, payloads: tuple[bytes, ...]) -> list[Effect]:
        self.last = max(self.last, first - 1 + len(payloads))
        return [Deliver(first, payloads), Sent(sender, Ack(self.last))]

    def welcomed(self: Execution, sink: str, following: int) -> list[Effect]:
        self.following[sink] = 1
        return self.send()

    monkeypatch.setattr(Downstream, "_take", take)
    monkeypatch.setattr(Execution, "welcomed", welcomed)
    assert goes_wrong(range(1001, 1031, 3))


def test_the_oracle_sees_input_that_is_forgotten_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    offer = old_host.offer

    def offers(site: Site, order: Order) -> list[Effect]:
        effects = offer(site, order)
        site.kept = None
        return effects

    monkeypatch.setattr(old_host, "offer", offers)
    assert goes_wrong(range(1001, 1046, 3))


def test_the_oracle_counts_what_is_lost_doubled_and_out_of_order() -> None:
    still = Network(replace(world(1000), migrations=0)).run()
    moved = Network(replace(world(1000), migrations=0)).run()
    assert not any(compared(still, moved).values())
    outputs = moved.delivered["d0"]
    moved.delivered["d0"] = [outputs[1], outputs[0], *outputs[3:], outputs[-1]]
    assert compared(still, moved) == {
        "lost": 1,
        "duplicated": 1,
        "reordered": 1,
        "hosts": 0,
        "unfinished": 0,
    }


def test_a_kill_is_in_the_middle_of_a_migration() -> None:
    made = world(1001)
    killed = with_kill(made, Network(made).run().steps)
    assert killed.kill is not None
    assert Network(killed).run().killed
