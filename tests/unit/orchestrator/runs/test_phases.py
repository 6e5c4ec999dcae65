"""Which phase comes next, whatever has happened."""

import pytest

from orchestrator.runs.backend import NodeOutcome, Status
from orchestrator.runs.phases import (
    Ending,
    Phase,
    PhaseResult,
    Urgency,
    complete,
    interrupted_by,
    is_wanted,
    judge,
)


def walk(troubles: dict[Phase, Ending], urgency_from: dict[Phase, Urgency] | None = None) -> list[Phase]:
    """The phases entered if these end badly, or if the user's urgency rises in these."""
    history: list[PhaseResult] = []
    urgency = Urgency.NONE
    for phase in Phase:
        if is_wanted(phase, history, urgency):
            urgency = (urgency_from or {}).get(phase, urgency)
            history.append(PhaseResult(phase, troubles.get(phase, Ending.OK)))
    return [result.phase for result in history]


def test_a_sound_run_goes_through_every_phase_in_order() -> None:
    assert walk({}) == list(Phase)


@pytest.mark.parametrize(
    ("phase", "ending"),
    [
        (phase, ending)
        for phase in (Phase.UP, Phase.CONVERGE, Phase.WARM_UP, Phase.MEASURE)
        for ending in (Ending.FAILED, Ending.TIMED_OUT, Ending.BROKE, Ending.INTERRUPTED)
        if (phase, ending) != (Phase.UP, Ending.INTERRUPTED)
    ],
)
def test_trouble_begins_nothing_new_but_saves_data_and_cleans_up(phase: Phase, ending: Ending) -> None:
    entered = walk({phase: ending})
    assert entered[: entered.index(phase) + 1] == list(Phase)[: list(Phase).index(phase) + 1]
    assert entered[entered.index(phase) + 1 :] == [Phase.STOP, Phase.COLLECT, Phase.DOWN, Phase.VERDICT]


def test_who_leaves_while_nodes_come_up_has_nothing_to_stop() -> None:
    entered = walk({Phase.UP: Ending.INTERRUPTED}, {Phase.UP: Urgency.IN_ORDER})
    assert entered == [Phase.PLAN, Phase.UP, Phase.DOWN, Phase.VERDICT]


def test_a_plan_that_fails_has_nothing_to_stop() -> None:
    assert walk({Phase.PLAN: Ending.BROKE}) == [Phase.PLAN, Phase.DOWN, Phase.VERDICT]


def test_data_is_collected_even_if_stopping_failed_and_down_always_follows() -> None:
    assert walk({Phase.STOP: Ending.BROKE, Phase.COLLECT: Ending.TIMED_OUT}) == list(Phase)


def test_enough_nodes_are_enough_to_go_on() -> None:
    assert walk({Phase.UP: Ending.DEGRADED}) == list(Phase)


def test_the_second_request_goes_straight_down() -> None:
    assert walk({}, {Phase.MEASURE: Urgency.AT_ONCE})[-2:] == [Phase.DOWN, Phase.VERDICT]
    assert Phase.STOP not in walk({}, {Phase.MEASURE: Urgency.AT_ONCE})
    assert Phase.COLLECT not in walk({}, {Phase.MEASURE: Urgency.IN_ORDER, Phase.STOP: Urgency.AT_ONCE})


def test_what_a_request_cuts_short() -> None:
    assert interrupted_by(Phase.MEASURE) is Urgency.IN_ORDER
    assert interrupted_by(Phase.COLLECT) is Urgency.AT_ONCE
    assert interrupted_by(Phase.DOWN) is None


def outcomes(ok: int, failed: int) -> list[NodeOutcome]:
    good = [NodeOutcome(f"n{i}", Status.OK) for i in range(ok)]
    return good + [NodeOutcome(f"m{i}", Status.FAILED, "no answer") for i in range(failed)]


@pytest.mark.parametrize(
    ("ok", "failed", "quorum", "ending"),
    [
        (5, 0, 1.0, Ending.OK),
        (4, 1, 1.0, Ending.FAILED),
        (4, 1, 0.8, Ending.DEGRADED),
        (3, 2, 0.8, Ending.FAILED),
        (0, 3, 0.0, Ending.DEGRADED),
    ],
)
def test_the_quorum_decides(ok: int, failed: int, quorum: float, ending: Ending) -> None:
    judged, reason = judge(outcomes(ok, failed), quorum)
    assert judged is ending
    assert (reason == "") == (failed == 0)
    if failed:
        assert "m0: no answer" in reason


def test_nodes_with_the_same_trouble_are_told_together() -> None:
    failed, away = Status.FAILED, Status.UNREACHABLE
    found = [
        NodeOutcome("n01", failed, "pi@10.0.0.1 does not accept this key"),
        NodeOutcome("n02", away, "10.0.0.2 port 22: connection refused"),
        NodeOutcome("n03", failed, "pi@10.0.0.3 does not accept this key"),
        NodeOutcome("a", failed, "routing knows no way to 2 of 3 nodes (b, c)"),
        NodeOutcome("b", failed, "routing knows no way to 1 of 3 nodes (a)"),
    ]
    assert judge(found, 1.0)[1] == (
        "5 of 5 nodes did not come through (n01: pi@10.0.0.1 does not accept this key; also n03; "
        "n02: 10.0.0.2 port 22: connection refused; a: routing knows no way to 2 of 3 nodes (b, c); also b)"
    )


def test_a_node_nobody_vouches_for_is_unreachable() -> None:
    found = complete([NodeOutcome("b", Status.OK)], ["a", "b"])
    assert [(outcome.node, outcome.status) for outcome in found] == [
        ("a", Status.UNREACHABLE),
        ("b", Status.OK),
    ]
