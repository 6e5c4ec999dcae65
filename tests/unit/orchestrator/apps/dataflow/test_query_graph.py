"""Queries as drawings: everything is there, nothing covers anything else."""

import random
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow
from orchestrator.apps.dataflow.planning.query_graph import mermaid, steps_of
from orchestrator.apps.dataflow.planning.query_layout import layout
from orchestrator.apps.dataflow.planning.query_svg import svg
from orchestrator.cli.plan import plan as rove_plan
from orchestrator.errors import BadInput

THREE_CELLS = Path(__file__).parents[3] / "three_cells.yaml"


def placed(query: Query, k: int) -> DeploymentPlan:
    counts = {name: k if name in query.inner() else 1 for name in query.names()}
    slots = [(name, index) for name, count in counts.items() for index in range(count)]
    return DeploymentPlan(query, tuple(Replica(*slot, f"n{n:02}") for n, slot in enumerate(slots)))


MEETING = Query(
    "meeting",
    (
        OperatorSpec("camera", "synthetic_source"),
        OperatorSpec("<radar>", "synthetic_source"),
        OperatorSpec("mean", "work", ("camera",), takes=CountWindow(10, 5)),
        OperatorSpec("meet", "match", ("camera", "<radar>"), takes=TimeWindow(2 * 10**9, 2 * 10**9)),
        OperatorSpec("pair", "match", ("mean", "meet"), takes=SameTau(), buffers={"meet": 20}),
        OperatorSpec("try", "work", ("pair",), on_error=ErrorPolicy(3, "dead_letter")),
        OperatorSpec("screen", "sink", ("try", "camera")),
    ),
    "exactly_once",
)


def test_mermaid() -> None:
    assert mermaid(placed(MEETING, 2)).splitlines()[:4] == [
        "flowchart LR",
        '  s0(["<b>camera</b><br/>synthetic_source<br/>0 → n00"]):::source',
        '  s1(["<b>&lt;radar&gt;</b><br/>synthetic_source<br/>0 → n01"]):::source',
        '  s2["<b>mean</b><br/>work<br/>window 10, slide 5<br/>0 → n02<br/>1 → n03"]:::operator',
    ]
    assert "  s3 -->|buffer 20| s4" in mermaid(placed(MEETING, 2))


def test_the_drawing_says_everything() -> None:
    drawing = ElementTree.fromstring(svg(placed(MEETING, 20)))
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    said = {"meeting: exactly once", "<radar>", "window 10, slide 5", "window 2 s", "join on τ", "buffer 20"}
    assert said <= set(texts)
    assert "on error retry 3, then dead letter" in texts
    assert "and 8 more" in texts
    edges = drawing.findall("{http://www.w3.org/2000/svg}path")
    assert len(edges) == sum(len(operator.after) for operator in MEETING.operators)


@pytest.mark.parametrize("seed", range(40))
def test_no_box_covers_another(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"op{n}" for n in range(rng.randint(2, 14))]
    operators = [OperatorSpec(names[0], "synthetic_source")]
    for index, name in enumerate(names[1:], start=1):
        after = rng.sample(names[:index], rng.randint(1, min(3, index)))
        operators.append(OperatorSpec(name, "work", tuple(after)))
    plan = placed(Query("any", tuple(operators)), 2)
    steps = {step.name: step for step in steps_of(plan)}
    edges = [(upstream, operator.name) for operator in operators for upstream in operator.after]
    boxes, lanes = layout(steps, edges, lambda step: (80.0 + len(step.name), 60.0))
    for (_, one), (_, other) in combinations(boxes.items(), 2):
        apart = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y
    for start, end in edges:
        assert boxes[start].x + boxes[start].width < boxes[end].x
    for lane in lanes.values():
        for box in boxes.values():
            beside = box.x + box.width <= lane.x or lane.x + lane.width <= box.x
            assert beside or not box.y < lane.middle < box.y + box.height


def test_rove_plan_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rove_plan(THREE_CELLS, cell=3, graph=str(tmp_path / "q.svg"))
    assert "2 → " in (tmp_path / "q.svg").read_text()
    rove_plan(THREE_CELLS, graph=str(tmp_path / "q.mmd"))
    capsys.readouterr()
    rove_plan(THREE_CELLS, graph="mermaid")
    assert capsys.readouterr().out == (tmp_path / "q.mmd").read_text()
    with pytest.raises(BadInput, match=r"ends in \.svg or \.mmd"):
        rove_plan(THREE_CELLS, graph="q.png")
    with pytest.raises(BadInput, match="no such file"):
        rove_plan(THREE_CELLS, graph=str(tmp_path / "missing" / "q.svg"))
    with pytest.raises(BadInput, match="--json"):
        rove_plan(THREE_CELLS, graph="mermaid", as_json=True)
