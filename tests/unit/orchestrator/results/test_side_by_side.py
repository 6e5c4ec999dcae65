"""`rove compare`: runs side by side, called by what differs, paired by seed."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.errors import BadInput
from orchestrator.results.side_by_side import Member, compared, grouped, parameters_of
from orchestrator.spec.dump import to_yaml
from tests.synthetic_runs import RunWriter

runner = CliRunner()


def member(
    argument: int,
    seed: int,
    goodput: float | None,
    usable: bool = True,
    kind: str = "query",
    **parameters: Any,
) -> Member:
    figures = {"kind": kind, "metrics": {"goodput_fps": goodput, "latency_p95_s": 0.5}}
    summary = {"run": f"r{argument}.{seed}", "seed": seed, "factors": {}, "apps": {kind: figures}}
    return Member(argument, f"demo r{argument}", summary, usable, parameters)


def test_runs_that_differ_in_their_seed_only_are_one_row_called_by_what_differs() -> None:
    members = [member(n, seed, 5.0, replicas=k, speed=5) for n, k in enumerate((1, 3)) for seed in (1, 2, 3)]
    groups = grouped(members)
    assert [(group.label, len(group.members)) for group in groups] == [("k = 1", 3), ("k = 3", 3)]
    assert [group.label for group in grouped(members, ["before", "after"])] == ["before", "after"]


def test_where_the_kind_of_a_section_differs_its_other_values_follow() -> None:
    olsr: dict[str, Any] = {"routing.protocol": "olsr", "routing.hello": 1.0, "routing.tc": 1.0}
    aodv: dict[str, Any] = {"routing.protocol": "aodv", "routing.hello": 1.0, "routing.active_route": 3.0}
    groups = grouped([member(0, 1, 1.0, **olsr), member(1, 1, 1.0, **aodv)])
    assert [group.label for group in groups] == ["routing = olsr", "routing = aodv"]


def test_rows_with_the_same_name_are_told_apart_by_their_runs() -> None:
    slow: dict[str, Any] = {"routing.protocol": "olsr", "routing.hello": 5.0}
    quick: dict[str, Any] = {"routing.protocol": "olsr", "routing.hello": 1.0}
    other: dict[str, Any] = {"routing.protocol": "aodv", "routing.hello": 1.0}
    groups = grouped([member(n, 1, 1.0, **each) for n, each in enumerate((slow, quick, other))])
    assert [group.label for group in groups] == [
        "routing = olsr (demo r0)",
        "routing = olsr (demo r1)",
        "routing = aodv",
    ]


def test_equal_experiments_are_called_by_their_runs() -> None:
    groups = grouped([member(0, 1, 1.0, replicas=1), member(1, 1, 1.0, replicas=1)])
    assert [group.label for group in groups] == ["demo r0", "demo r1"]


def test_parameters_are_all_values_but_the_seed_with_choices_by_name() -> None:
    spec = {
        "name": "a",
        "seed": 3,
        "replicas": 2,
        "routing": {"protocol": "olsr", "hello": 1.0},
        "faults": [{}],
    }
    found = parameters_of(spec, {"routing": "slow", "seed": 3}, "0123")
    assert found == {"routing": "slow", "replicas": 2, "faults": [{}], "commit": "0123"}


def document(ours: list[float | None], base: list[float | None], **changes: Any) -> dict[str, Any]:
    members = [member(0, seed, value, replicas=1) for seed, value in enumerate(base)]
    members += [member(1, seed, value, replicas=3, **changes) for seed, value in enumerate(ours)]
    return compared(grouped(members))


def test_ratios_are_of_pairs_with_their_interval_and_a_sentence() -> None:
    found = document([10.0, 12.0, 14.0, 11.0], [5.0, 6.0, 7.0, 5.4])
    cell = found["apps"]["query"]["metrics"]["goodput_fps"]["groups"][1]
    assert cell["pairs"] == 4 and cell["ratio_of_means"] == pytest.approx(47 / 23.4)
    low, high = cell["ratio_of_means_95"]
    assert 1.9 < low < 2.0 < high < 2.1
    (sentence,) = found["sentences"]
    assert sentence.startswith("k = 3 has 2.01 × the goodput of k = 1 (95 % interval ")
    assert sentence.endswith(", 4 pairs of the same seed): better.")


@pytest.mark.parametrize(
    ("ours", "base", "end"),
    [
        (
            [10.0, 12.0],
            [5.0, 6.0],
            "(2 pairs of the same seed). That is no result yet: at least 3 pairs are needed.",
        ),
        ([5.0, 7.0, 6.0], [6.0, 5.0, 7.0], "3 pairs of the same seed): no difference is shown."),
        ([1.0, 1.1, 1.0], [5.0, 5.2, 5.1], "3 pairs of the same seed): worse."),
        ([1.0], [0.0], "k = 1 has a goodput of 0, so that no ratio can be given."),
        ([None], [5.0], "k = 3 has no goodput: nothing to compare."),
        ([0.0] * 4, [5.0] * 4, "(4 pairs of the same seed); no interval can be given."),
    ],
)
def test_a_sentence_says_no_more_than_the_pairs_do(
    ours: list[float | None], base: list[float | None], end: str
) -> None:
    (sentence,) = document(ours, base)["sentences"]
    assert sentence.endswith(end)


def test_without_a_common_seed_there_is_no_comparison() -> None:
    members = [member(0, 1, 5.0, replicas=1), member(1, 2, 10.0, replicas=3)]
    (sentence,) = compared(grouped(members))["sentences"]
    assert "k = 3 has 2.00 × the goodput of k = 1, but no seed has both" in sentence


def test_invalid_runs_are_left_out_and_named() -> None:
    members = [member(0, s, 5.0, replicas=1) for s in (1, 2)]
    members += [member(1, 1, 9.0, replicas=3), member(1, 2, 99.0, usable=False, replicas=3)]
    found = compared(grouped(members))
    assert found["groups"][1]["excluded"] == ["r1.2"]
    assert found["apps"]["query"]["metrics"]["goodput_fps"]["groups"][1]["mean"] == 9.0


@pytest.mark.parametrize(("kind", "name"), [("interest", "situations"), ("detect", "detections")])
def test_runs_of_every_application_can_be_compared(kind: str, name: str) -> None:
    def run(argument: int, seed: int, value: float) -> Member:
        found = member(argument, seed, None, kind=kind, replicas=argument)
        app = {"kind": kind, "metrics": {name: value}}
        return found._replace(summary={**found.summary, "apps": {kind: app}})

    members = [run(argument, seed, 4.0 + 2 * argument) for argument in (0, 1) for seed in (1, 2, 3)]
    row = compared(grouped(members))["apps"][kind]["metrics"][name]
    assert row["groups"][1]["ratio_of_means"] == 1.5


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member(0, 1, 5.0, a=1), member(1, 1, 5.0, a=2, kind="flows")], "nothing in common: no application"),
        ([member(0, 1, None, False, a=1), member(1, 1, 5.0, False, a=2)], "none of these runs can be used"),
        ([member(0, 1, 5.0, a=1), member(0, 2, 5.0, a=1)], "only one kind of run"),
    ],
)
def test_runs_with_nothing_in_common_get_one_clear_error(members: list[Member], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        compared(grouped(members))


def written(root: Path, run: str, k: int, seed: int, goodput: float) -> None:
    writer = RunWriter(root, "demo", run, 1)
    directory = writer.write({}, seed, "valid")
    (directory / "spec.yaml").write_text(to_yaml({"name": "demo", "seed": seed, "replicas": k}))
    figures = {"kind": "query", "metrics": {"goodput_fps": goodput}}
    summary = {"run": run, "seed": seed, "factors": {}, "metrics": {}, "apps": {"query": figures}}
    (directory / "summary.json").write_text(json.dumps(summary))


def test_the_verb_compares_what_is_analysed_already(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        written(tmp_path, f"one-{seed}", 1, seed, 5.0 + seed)
        written(tmp_path, f"three-{seed}", 3, seed, 10.0 + 2 * seed)
    runs = [f"{k}-{seed}" for k in ("one", "three") for seed in (1, 2, 3)]
    shown = runner.invoke(app, ["compare", *runs, "--runs-dir", str(tmp_path)], env={"COLUMNS": "150"})
    assert shown.exit_code == 0, shown.output
    assert "k = 3 has 2.00 × the goodput of k = 1 (95 % interval 2.00 to 2.00, 3 pairs" in shown.output
    told = runner.invoke(app, ["compare", *runs, "--runs-dir", str(tmp_path), "--json"])
    found = json.loads(told.stdout)
    assert [group["label"] for group in found["groups"]] == ["k = 1", "k = 3"]


def test_labels_are_one_for_each(tmp_path: Path) -> None:
    written(tmp_path, "one", 1, 1, 5.0)
    written(tmp_path, "two", 1, 1, 5.0)
    command = ["compare", "one", "two", "--runs-dir", str(tmp_path)]
    wrong = runner.invoke(app, [*command, "--label", "a"])
    assert isinstance(wrong.exception, BadInput) and "1 labels for 2 things" in str(wrong.exception)
    same = runner.invoke(app, [*command, "--label", "a", "--label", "a"])
    assert isinstance(same.exception, BadInput)
    shown = runner.invoke(app, [*command, "--label", "before", "--label", "after"], env={"COLUMNS": "150"})
    assert "after has 1.00 × the goodput of before (1 pair of the same seed)" in shown.output


def test_whether_runs_have_anything_in_common_is_said_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def analyze(*_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("orchestrator.analytics.pipeline.analyze", analyze)
    for run, kind in (("one", "query"), ("two", "flows")):
        written(tmp_path, run, 1, 1, 5.0)
        directory = tmp_path / "demo" / run
        (directory / "summary.json").unlink()
        manifest = json.loads((directory / "manifest.json").read_text())
        if kind == "flows":  # without "apps" it is an old run of a query
            manifest["apps"] = {"flows": {"kind": "flows", "flows": []}}
        (directory / "manifest.json").write_text(json.dumps(manifest))
    for runs, text in (
        (["one", "two"], "these runs have nothing in common: no application of one is in another"),
        (["one"], "there is only one kind of run"),
    ):
        answer = runner.invoke(app, ["compare", *runs, "--runs-dir", str(tmp_path)])
        assert isinstance(answer.exception, BadInput) and text in str(answer.exception), answer.output
