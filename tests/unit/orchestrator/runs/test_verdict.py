"""When a run can be believed."""

import json

import pytest

from node_agent.telemetry.segments import Completeness
from orchestrator.runs.phases import Ending, Phase, PhaseResult
from orchestrator.runs.verdict import (
    Judgement,
    Verdict,
    judge_dead,
    judge_expectations,
    judge_reading,
    judge_run,
    judge_sweep,
    noted,
)

WHOLE = Completeness(records=10, boots=1, missing=0, duplicates=0, torn=0, corrupt=0, unclosed_boots=0)
ACTED = [phase for phase in Phase if phase is not Phase.VERDICT]


def history(**endings: Ending) -> list[PhaseResult]:
    by_phase = {Phase[name]: ending for name, ending in endings.items()}
    return [PhaseResult(phase, by_phase.get(phase, Ending.OK), 1.0, "because") for phase in ACTED]


def flawed(**flaws: int) -> Completeness:
    values = {name: getattr(WHOLE, name) for name in WHOLE.__struct_fields__}
    return Completeness(**{**values, **flaws})


def test_a_whole_run_is_valid_and_says_nothing() -> None:
    verdict = judge_run(history(), {"n1": WHOLE})
    assert (verdict.verdict, verdict.reasons) == (Judgement.VALID, ())


@pytest.mark.parametrize(
    ("endings", "judgement"),
    [
        ({"UP": Ending.FAILED}, Judgement.FAILED),
        ({"UP": Ending.TIMED_OUT}, Judgement.FAILED),
        ({"UP": Ending.DEGRADED}, Judgement.INVALID),
        ({"CONVERGE": Ending.TIMED_OUT}, Judgement.INVALID),
        ({"CONVERGE": Ending.BROKE}, Judgement.FAILED),
        ({"MEASURE": Ending.FAILED}, Judgement.FAILED),
        ({"COLLECT": Ending.FAILED}, Judgement.INVALID),
        ({"STOP": Ending.BROKE}, Judgement.INVALID),
        ({"DOWN": Ending.TIMED_OUT}, Judgement.FAILED),
        ({"CONVERGE": Ending.TIMED_OUT, "DOWN": Ending.BROKE}, Judgement.FAILED),
    ],
)
def test_how_phases_end_decides(endings: dict[str, Ending], judgement: Judgement) -> None:
    verdict = judge_run(history(**endings), {"n1": WHOLE})
    assert verdict.verdict is judgement
    assert len(verdict.reasons) == len(endings)
    assert all("because" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("flaw", "text"),
    [
        ({"missing": 3}, "3 × records missing (n1)"),
        ({"duplicates": 2}, "2 × records twice (n1)"),
        ({"torn": 1}, "1 × lines torn (n1)"),
        ({"corrupt": 4}, "4 × lines corrupt (n1)"),
        ({"unclosed_boots": 1}, "1 × agents not stopped in order (n1)"),
        ({"boots": 0, "records": 0}, "1 × no telemetry at all (n1)"),
    ],
)
def test_incomplete_telemetry_is_invalid_and_counted(flaw: dict[str, int], text: str) -> None:
    verdict = judge_run(history(), {"n0": WHOLE, "n1": flawed(**flaw)})
    assert verdict.verdict is Judgement.INVALID
    assert verdict.reasons == (f"telemetry incomplete: {text}",)


def test_many_flawed_nodes_make_one_reason() -> None:
    verdict = judge_run(history(), {f"n{i}": flawed(missing=1) for i in range(9)})
    assert verdict.reasons == ("telemetry incomplete: 9 × records missing (n0, n1, n2, n3, n4 and 4 more)",)


def test_what_went_wrong_is_said_once() -> None:
    told = [
        PhaseResult(Phase.UP, Ending.FAILED, 1.0, "n1: off"),
        PhaseResult(Phase.STOP, Ending.FAILED, 1.0, "n1: off"),
        PhaseResult(Phase.COLLECT, Ending.FAILED, 1.0, "n2: no room"),
    ]
    assert judge_run(told, {}).reasons == ("up failed: n1: off", "collect failed: n2: no room")


def test_who_never_came_up_is_not_missed_afterwards() -> None:
    told = [
        PhaseResult(Phase.UP, Ending.BROKE, 1.0, "core: off"),
        PhaseResult(Phase.STOP, Ending.FAILED, 1.0, "nothing was heard of n1"),
        PhaseResult(Phase.COLLECT, Ending.TIMED_OUT, 1.0),
    ]
    assert judge_run(told, {}).reasons == ("up broke: core: off", "collect timed out")


def test_telemetry_of_nodes_that_never_came_up_is_not_missed() -> None:
    verdict = judge_run(history(UP=Ending.FAILED), {"n1": flawed(boots=0, records=0)})
    assert len(verdict.reasons) == 1


def test_what_the_backend_doubts_is_invalid_but_fails_nothing() -> None:
    doubted = judge_run(history(), {"n1": WHOLE}, ("the radio was late",))
    assert (doubted.verdict, doubted.reasons) == (Judgement.INVALID, ("the radio was late",))
    failed = judge_run(history(UP=Ending.FAILED), {}, ("the radio was late",))
    assert failed.verdict is Judgement.FAILED


def test_an_interrupted_run_is_invalid() -> None:
    cut = [*history(MEASURE=Ending.INTERRUPTED)]
    assert judge_run(cut, {"n1": WHOLE}).reasons == ("interrupted by user",)
    before_it_began = [PhaseResult(Phase.PLAN, Ending.OK), PhaseResult(Phase.DOWN, Ending.OK)]
    verdict = judge_run(before_it_began, {})
    assert (verdict.verdict, verdict.reasons) == (Judgement.INVALID, ("interrupted by user",))


def test_expectations_fail_a_valid_run_only() -> None:
    asked = [{"expect": "throughput_fps > 1", "value": 0.5, "holds": False}]
    failed = judge_expectations(Verdict(Judgement.VALID), asked, ["expected more"])
    assert failed.verdict is Judgement.FAILED
    assert failed.expectations == tuple(asked)
    invalid = judge_expectations(Verdict(Judgement.INVALID, ("host late",)), asked, ["expected more"])
    assert (invalid.verdict, invalid.reasons) == (Judgement.INVALID, ("host late",))
    assert judge_expectations(Verdict(Judgement.VALID), asked, []).verdict is Judgement.VALID


def test_who_is_read_in_two_ways_spoils_the_run() -> None:
    sound = judge_run(history(), {"n1": flawed(), "n2": flawed(torn=1)}, crashes={"n2": 1})
    as_judged = {
        node: {"records": found.records, "corrupt_lines": found.torn, "refused": 0}
        for node, found in sound.completeness.items()
    }
    assert sound.verdict is Judgement.VALID
    assert judge_reading(sound, as_judged) == sound
    other = judge_reading(sound, {**as_judged, "n1": {"records": 3, "corrupt_lines": 0, "refused": 1}})
    assert other.verdict is Judgement.INVALID
    assert other.reasons == (
        "the analysis reads the records of node n1 in another way: 3 instead of "
        f"{sound.completeness['n1'].records} records, 1 instead of 0 refused",
    )


def test_a_sweep_is_as_good_as_its_worst_member() -> None:
    members = {"s.01": Verdict(Judgement.VALID), "s.02": Verdict(Judgement.INVALID, ("gap",))}
    verdict = judge_sweep(members, planned=2)
    assert (verdict.verdict, verdict.reasons) == (Judgement.INVALID, ("s.02: gap",))
    assert verdict.document()["members"] == {"s.01": "valid", "s.02": "invalid"}
    short = judge_sweep({"s.01": Verdict(Judgement.VALID)}, planned=3)
    assert short.reasons == ("interrupted by user", "2 of 3 runs were not started")


def test_exit_codes_and_document() -> None:
    assert [judgement.exit_code for judgement in Judgement] == [0, 3, 1]
    document = judge_run(history(), {"n1": WHOLE}).document()
    document = json.loads(json.dumps(document))
    assert list(document) == ["verdict", "reasons", "completeness", "phases", "expectations", "refused"]
    assert document["phases"][0] == {"phase": "plan", "seconds": 1.0, "outcome": "ok"}
    assert document["completeness"]["n1"]["records"] == 10


def test_a_dead_run_failed() -> None:
    assert judge_dead("measure").reasons == ("orchestrator died during measure",)
    assert judge_dead(None).verdict is Judgement.FAILED


def test_notes_make_nothing_invalid_and_are_said_once_for_a_sweep() -> None:
    noted_run = noted(Verdict(Judgement.VALID, notes=("costs",)), ["costs", "silence"])
    assert (noted_run.verdict, noted_run.notes) == (Judgement.VALID, ("costs", "silence"))
    sweep = judge_sweep({"s.1": noted_run, "s.2": Verdict(Judgement.VALID, notes=("costs",))}, 2)
    assert sweep.verdict is Judgement.VALID
    assert sweep.notes == ("costs (all 2 runs)", "silence (s.1)")
    assert "notes" not in Verdict(Judgement.VALID).document()
