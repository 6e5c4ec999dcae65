"""Events from a file: what is read, every mistake with its line, and the copy that a run keeps."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.comet.model import OwnEvent
from orchestrator.apps.comet import trace_file
from orchestrator.apps.comet.plan import DetectPlan
from orchestrator.apps.comet.trace_file import EventTrace, read_event_trace
from orchestrator.mobility.trace_file import TraceError
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_checked
from orchestrator.planning.semantics import plan_run
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from tests.unit.orchestrator.apps.comet.test_detect_section import EVENTS, document

pytestmark = pytest.mark.unit

BOTH = "event,start,end\n# a comment\nsmoke,20,25\nheat,3.5,3.5\n\nsmoke,4,6\n"


def read(tmp_path: Path, text: str, name: str = "events.csv") -> EventTrace:
    file = tmp_path / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return read_event_trace(file)


def traced(tmp_path: Path, text: str = BOTH, **heat: Any) -> Experiment:
    """Smoke is in a file; heat, too, unless it is said otherwise."""
    (tmp_path / "events.csv").write_text(text)
    events = {
        "smoke": {"node": "field", "trace": "events.csv"},
        "heat": {"node": "barn", **(heat or {"trace": "events.csv"})},
    }
    file = tmp_path / "farm.yaml"
    file.write_text(to_yaml(document({"events": events})))
    return load_checked(file)


def own_events(experiment: Experiment) -> dict[str, OwnEvent]:
    run, findings = plan_run(experiment)
    assert run is not None, findings
    plan = run.apps["detect"]
    assert isinstance(plan, DetectPlan)
    return {event.name: event for node in plan.nodes() for event in plan.agent_config(node).events}


def misplanned(experiment: Experiment) -> list[str]:
    run, findings = plan_run(experiment)
    assert run is None
    return [f"{'.'.join(map(str, each.at))}: {each.message}" for each in findings]


@pytest.mark.parametrize("name", ["events.csv", "events.csv.gz"])
def test_several_events_in_one_file(tmp_path: Path, name: str) -> None:
    trace = read(tmp_path, BOTH, name)
    assert trace.problems == []
    assert trace.of("smoke") == ((4.0, 6.0), (20.0, 25.0)) and trace.of("heat") == ((3.5, 3.5),)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("t\n5\n1\n", ((1.0, 1.0), (5.0, 5.0))),
        ("start,end\n1,2\n", ((1.0, 2.0),)),
        ("event,start\nsmoke,1\nheat,2\n", ((1.0, 1.0),)),
    ],
)
def test_other_headers(tmp_path: Path, text: str, times: Any) -> None:
    assert read(tmp_path, text).of("smoke") == times


def test_every_mistake_is_listed_with_its_line(tmp_path: Path) -> None:
    rows = (
        "smoke,x,1",
        "smoke,1",
        ",1,2",
        "smoke,5,4",
        "smoke,-1,4",
        "smoke,1,nan",
        "heat,1,2",
        "heat,1,1e9",
    )
    text = "\n".join(("event,start,end", *rows))
    found = [(each.line, each.message) for each in read(tmp_path, text).problems]
    assert found == [
        (2, "start is not a number: 'x'"),
        (3, "2 values, expected 3: event,start,end"),
        (4, "the event has no name"),
        (5, "ends at 4 s, before it starts at 5 s"),
        (6, "start is -1 s: it must be from 0 to 30 days"),
        (7, "end is not finite: 'nan'"),
        (9, "end is 1e+09 s: it must be from 0 to 30 days"),
    ]
    assert len(read(tmp_path, "t\n" + "x\n" * 100).problems) == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("t\n", "lists no event"),
        ("time,name\n1,smoke\n", "the first line must be event,start,end or event,start or start,end or t"),
    ],
)
def test_a_file_without_events(tmp_path: Path, text: str, words: str) -> None:
    (problem,) = read(tmp_path, text).problems
    assert words in problem.message


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "MOST_LINES", 3)
    (problem,) = read(tmp_path, "t\n1\n2\n3\n4\n5\n").problems
    assert problem.line == 5 and "more than 3" in problem.message
    monkeypatch.setattr(trace_file, "MOST_TIMES", 2)
    with pytest.raises(TraceError, match="at most 2"):
        read(tmp_path, "t\n1\n2\n3\n").of("smoke")


def test_agents_are_given_the_times(tmp_path: Path) -> None:
    events = own_events(traced(tmp_path))
    assert events["smoke"].times == ((4.0, 6.0), (20.0, 25.0))
    assert events["smoke"].rate == pytest.approx(2 / 3600)
    one = own_events(traced(tmp_path, "t\n5\n4000\n", rate="6 /h"))
    assert one["smoke"].times == ((5.0, 5.0), (4000.0, 4000.0))
    assert one["smoke"].rate == pytest.approx(1 / 3600)  # the run is over after an hour
    assert one["heat"].times is None


def test_what_is_wrong_with_a_file_is_told_once(tmp_path: Path) -> None:
    found = misplanned(traced(tmp_path, "event,start\nsmoke,1\nheat,x\nsmoke,y\n"))
    assert [each.partition(":")[0] for each in found] == ["detect.events.smoke.trace"] * 2
    assert "events.csv:3: start is not a number" in found[0] and "events.csv:4: " in found[1]
    (missing,) = misplanned(traced(tmp_path, "event,start\nsmoke,1\nheats,1\n"))
    assert missing.startswith("detect.events.heat.trace") and 'lists no event "heat"' in missing
    (late,) = misplanned(traced(tmp_path, "t\n3600\n", rate="6 /h"))
    assert late.startswith("detect.events.smoke.trace") and "the run is over after 3600 s" in late


def test_a_run_keeps_a_copy(tmp_path: Path) -> None:
    experiment = traced(tmp_path)
    kept = tmp_path / "run"
    for name, content in bundle(experiment).items():
        file = kept / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (tmp_path / "events.csv").unlink()
    again = load_checked(kept / "spec.yaml")
    assert own_events(again) == own_events(experiment)
    (copy,) = (kept / "detect").rglob("events.csv")
    assert copy.read_text() == BOTH


@pytest.mark.parametrize("key", ["rate", "times", "length", "stop"])
def test_a_trace_says_when_it_occurs(tmp_path: Path, key: str) -> None:
    (tmp_path / "events.csv").write_text("t\n1\n")
    trace = str(tmp_path / "events.csv")
    events = {**EVENTS, "smoke": {"node": "field", "trace": trace, key: [1] if key == "times" else 1}}
    with pytest.raises(ValueError, match="when it occurs"):
        Experiment.model_validate(document({"events": events}))
