"""The accounts of the fault campaign: they explain what the records tell, and nothing else."""

from typing import Any

import pytest

from benchmarks.faults.accounts import Accounts, Record
from benchmarks.faults.schedules import QUERIES, schedule, tight_schedule
from benchmarks.faults.world import outcome
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import Query


def plan(name: str) -> DeploymentPlan:
    """A node for every replica, named like its operator; two of each but of sources and sinks."""
    query = Query(name, QUERIES[name])
    ends = [Replica(end, 0, f"{end}0") for end in (*query.sources(), *query.sinks())]
    inner = [Replica(op, i, f"{op}{i}") for op in query.inner() for i in range(2)]
    return DeploymentPlan(query, (*ends, *inner))


class Records:
    """Of agents that all live to the end, but for those that ``crash``."""

    def __init__(self, name: str) -> None:
        self.plan = plan(name)
        self.records: list[Record] = []
        self._crashed: set[str] = set()
        for replica in self.plan.replicas:
            self._add("agent_start", replica.node)

    def _add(self, kind: str, node: str, boot: int = 1, **fields: Any) -> None:
        self.records.append({"kind": kind, "node": node, "boot": boot, "t_ns": len(self.records), **fields})

    def tuple(self, kind: str, replica: str, tau: int, origin: str = "s/0", **fields: Any) -> None:
        node = replica.replace("/", "")
        self._add(f"tuple_{kind}", node, replica=replica, origin=origin, tau=tau, **fields)

    def hop(self, sender: str, to: str, tau: int, origin: str = "s/0") -> None:
        self.tuple("sent", sender, tau, origin, to=to)
        self.tuple("received", to, tau, origin, sender=sender)

    def crash(self, node: str) -> None:
        self._crashed.add(node)
        self._add("agent_start", node, 2)

    def accounts(self, policy: str = "shortest_path") -> Accounts:
        for replica in self.plan.replicas:
            boots = (2,) if replica.node in self._crashed else (1,)
            for boot in boots:
                self._add("agent_stop", replica.node, boot)
        return Accounts(self.plan, self.records, policy)


def test_a_tuple_that_just_vanishes_is_not_explained() -> None:
    records = Records("chain")
    records.tuple("emitted", "s/0", 1)
    records.hop("s/0", "a/0", 1)
    assert not records.accounts().explains("z", ("s/0", 1))


def test_it_is_not_explained_by_the_crash_of_somebody_who_never_had_it() -> None:
    records = Records("chain")
    records.tuple("emitted", "s/0", 1)
    records.hop("s/0", "a/0", 1)
    records.crash("a1")
    records.crash("b0")
    assert not records.accounts().explains("z", ("s/0", 1))


def test_its_holder_crashed() -> None:
    records = Records("chain")
    records.tuple("emitted", "s/0", 1)
    records.hop("s/0", "a/0", 1)
    records.crash("a0")
    assert records.accounts().explains("z", ("s/0", 1))


def test_it_was_sent_to_one_who_crashed_but_not_to_one_who_had_crashed_before() -> None:
    records = Records("chain")
    records.tuple("emitted", "s/0", 1)
    records.tuple("sent", "s/0", 1, to="a/0")
    records.crash("a0")
    records.tuple("emitted", "s/0", 2)
    records.tuple("sent", "s/0", 2, to="a/0")
    accounts = records.accounts()
    assert accounts.explains("z", ("s/0", 1))
    assert not accounts.explains("z", ("s/0", 2))


def test_a_drop_explains_the_branch_that_it_names() -> None:
    records = Records("fan-out")
    records.tuple("emitted", "s/0", 1)
    records.tuple("dropped", "s/0", 1, reason="link_failed", downstream="a")
    accounts = records.accounts()
    assert accounts.explains("y", ("s/0", 1))
    assert not accounts.explains("z", ("s/0", 1))


def halves(*where: str) -> Records:
    """The two halves of a join, each at a replica of it."""
    records = Records("join by position")
    for (source, operator), to in zip((("s/0", "a/0"), ("t/0", "b/0")), where, strict=True):
        records.tuple("emitted", source, 1, source)
        records.hop(source, operator, 1, source)
        records.hop(operator, to, 1, source)
    return records


@pytest.mark.parametrize("where", [("j/0", "j/0"), ("j/0", "j/1"), ("j/1", "j/0")])
def test_a_join_whose_inputs_are_all_there_must_be_made_wherever_they_are(where: tuple[str, str]) -> None:
    assert not halves(*where).accounts().explains("z", ("j", 1))


def test_a_half_of_a_join_may_have_crashed_with_its_holder() -> None:
    records = halves("j/0", "j/1")
    records.crash("j0")
    assert records.accounts().explains("z", ("j", 1))


def test_a_half_of_a_join_may_have_been_dropped() -> None:
    records = halves("j/0", "j/1")
    records.tuple("dropped", "j/1", 1, "t/0", reason="incomplete_window", downstream=None)
    assert records.accounts().explains("z", ("j", 1))


def test_what_was_handed_over_is_the_siblings_and_no_loss() -> None:
    records = halves("j/0", "j/1")
    records.hop("j/0", "j/1", 1, "s/0")
    assert not records.accounts().explains("z", ("j", 1))


@pytest.mark.parametrize(("node", "explained"), [("j0", False), ("j1", True)])
def test_what_was_handed_over_goes_with_the_sibling(node: str, explained: bool) -> None:
    records = halves("j/0", "j/1")
    records.hop("j/0", "j/1", 1, "s/0")
    records.crash(node)
    assert records.accounts().explains("z", ("j", 1)) is explained


def test_what_came_back_is_there_again() -> None:
    records = halves("j/0", "j/0")
    records.hop("j/0", "j/1", 1, "s/0")
    records.hop("j/1", "j/0", 1, "s/0")
    records.crash("j1")
    assert not records.accounts().explains("z", ("j", 1))


def test_what_was_handed_over_does_not_just_vanish() -> None:
    records = halves("j/0", "j/1")
    records.tuple("sent", "j/0", 1, to="j/1")
    assert not records.accounts().explains("z", ("j", 1))


def test_what_was_handed_over_may_be_lost_with_its_link() -> None:
    records = halves("j/0", "j/1")
    records.tuple("sent", "j/0", 1, to="j/1")
    records.tuple("dropped", "j/0", 1, reason="link_failed", downstream=None)
    assert records.accounts().explains("z", ("j", 1))


def test_a_link_that_broke_explains_what_it_lost_and_not_what_vanished_later() -> None:
    records = halves("j/0", "j/1")
    records.hop("j/0", "j/1", 1, "s/0")
    records.tuple("dropped", "j/0", 1, reason="link_failed", downstream=None)  # it arrived all the same
    records.tuple("sent", "j/1", 1, to="j/0")
    assert not records.accounts().explains("z", ("j", 1))


@pytest.mark.parametrize(("crashes_first", "explained"), [(False, True), (True, False)])
def test_what_was_handed_over_may_be_lost_in_the_crash_of_the_sibling(
    crashes_first: bool, explained: bool
) -> None:
    records = halves("j/0", "j/0")
    if crashes_first:
        records.crash("j1")
    records.tuple("sent", "j/0", 1, to="j/1")
    if not crashes_first:
        records.crash("j1")
    assert records.accounts().explains("z", ("j", 1)) is explained


def test_what_no_sibling_took_has_expired() -> None:
    records = halves("j/0", "j/1")
    records.tuple("dropped", "j/0", 1, reason="expired", downstream=None)
    assert records.accounts().explains("z", ("j", 1))


@pytest.mark.parametrize(("policy", "explained"), [("shortest_path", True), ("round_robin", False)])
def test_windows_of_one_input_are_split_only_where_nobody_hands_over(policy: str, explained: bool) -> None:
    records = Records("chain with a window")
    for tau in range(1, 7):
        records.tuple("emitted", "s/0", tau)
        records.hop("s/0", "a/0", tau)
        records.hop("a/0", "w/0" if tau < 4 else "w/1", tau)
    assert records.accounts(policy).explains("z", ("w", 1)) is explained


def test_a_window_lacks_what_was_dropped_on_the_way_to_it() -> None:
    records = Records("chain with a window")
    for tau in range(1, 7):
        records.tuple("emitted", "s/0", tau)
        records.hop("s/0", "a/0", tau)
        if tau == 4:
            records.tuple("dropped", "a/0", tau, reason="expired", downstream="w")
        else:
            records.hop("a/0", "w/0", tau)
    accounts = records.accounts()
    assert accounts.explains("z", ("w", 1))
    assert accounts.altered(("w", 1)) and accounts.altered(("w", 2)) and not accounts.altered(("w", 3))


VOTES_TURN_WHILE_HANDING_OVER = (5003, 5048, 5087)


@pytest.mark.parametrize("seed", [*range(6), *VOTES_TURN_WHILE_HANDING_OVER])
def test_best_effort_accounts_for_every_loss(seed: int) -> None:
    result = outcome(schedule(seed, "best_effort"))
    assert result.clean, f"python -m benchmarks.fault_campaign --reliability best_effort --seed {seed}"


@pytest.mark.parametrize("seed", range(6))
def test_with_next_to_no_room_only_who_may_drop_loses(seed: int) -> None:
    drawn = tight_schedule(seed)
    result = outcome(drawn)
    assert result.clean, f"python -m benchmarks.fault_campaign --tight --seed {seed}"
    assert drawn.may_lose or not result.lost
