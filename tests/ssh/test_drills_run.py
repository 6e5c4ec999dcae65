"""Drills: trouble in the middle of a run. What is over soon does not count; what stays has its outcome."""

import os
import shutil
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from node_agent.telemetry.segments import Completeness
from orchestrator.errors import EXIT_FAILED, EXIT_INVALID, EXIT_OK
from orchestrator.runs.backend import Status
from tests.ssh.drill import TEST_S, Drill, contents, wait_until
from tests.ssh.lab import EXPERIMENT, Lab, LabNode

pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]
DISK = 96 << 20
SLOW = "2mbit"
LARGE = 1 << 20
"""A file that takes its time over a slow cable."""


def fill(disk: Path) -> None:
    """To the last byte."""
    with (disk / "filler").open("wb", buffering=0) as file:
        block = bytes(1 << 20)
        while len(block) > 0:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]


def check_whole(drill: Drill, nodes: list[LabNode]) -> None:
    for node in nodes:
        for phase in ("up", "converge", "measure", "stop", "collect"):
            assert drill.outcome(phase, node).status is Status.OK, drill.outcome(phase, node)
        assert drill.completeness(node).complete


def busy(node: LabNode) -> dict[str, Any]:
    """A run long enough to notice losses, in which this node has something of its own to record."""
    query, placement = deepcopy(EXPERIMENT["query"]), deepcopy(EXPERIMENT["placement"])
    query["operators"]["meter"] = {"kind": "synthetic_source", "rate": "50 fps", "payload": "10 B"}
    query["operators"]["display"] = {"kind": "sink", "after": "meter"}
    placement["nodes"] |= {"meter": [node.name], "display": [node.name]}
    return {"query": query, "placement": placement, "duration": "8s", "lease": "9s"}


class Losses(NamedTuple):
    """A run with losses; what n05 had on its disk when it was back, and what came of it later."""

    drill: Drill
    kept: dict[str, str]
    collected: dict[str, str]


@pytest.fixture(scope="module")
def losses(standing_lab: Lab) -> Losses:
    """A run in which n04 loses its supervisor, n05 its power, and n06 the last of its room."""
    unkept, dying, full = standing_lab.nodes[3:]
    with full.small_disk(DISK) as disk, Drill(standing_lab, "losses", quorum=0.5, **busy(full)) as drill:
        drill.reach("measure")
        drill.until(lambda: records_on(drill, dying), "n05 has recorded something")
        unkept.kill("node_agent.supervisor", "run")
        fill(disk)
        with standing_lab.without_power(dying):
            drill.finish()
    return Losses(drill, contents(drill.on_node(dying)), drill.collect_later())


def records_on(drill: Drill, node: LabNode) -> bool:
    return any(path.stat().st_size for path in drill.on_node(node).glob("segments/*"))


def test_a_node_that_dies_is_collected_when_it_is_back(lab: Lab, losses: Losses) -> None:
    drill, node = losses.drill, lab.node("n05")
    for phase in ("measure", "stop", "collect"):
        assert drill.outcome(phase, node).status is Status.UNREACHABLE
    assert drill.exit_code == EXIT_INVALID
    assert any(name.startswith("segments/") for name in losses.kept)
    assert losses.collected == {node.name: "collected"}
    assert contents(drill.here(node)).items() >= losses.kept.items()
    check_readable(drill.completeness(node))
    assert not node.runs, "what is here and verified is no longer there"


def test_a_node_whose_disk_fills_up_fails_and_says_so(lab: Lab, losses: Losses) -> None:
    drill, node = losses.drill, lab.node("n06")
    outcome = drill.outcome("measure", node)
    assert outcome.status is Status.FAILED and "No space left" in outcome.reason
    check_readable(drill.completeness(node))


def test_a_node_whose_supervisor_is_killed_fails_and_is_tidied(lab: Lab, losses: Losses) -> None:
    drill, node = losses.drill, lab.node("n04")
    outcome = drill.outcome("measure", node)
    assert outcome.status is Status.FAILED and "its supervisor was killed" in outcome.reason
    assert drill.completeness(node).complete, "the agent noticed, and stopped in order"


def test_the_others_go_on(lab: Lab, losses: Losses) -> None:
    check_whole(losses.drill, lab.nodes[:3])
    assert losses.drill.delivered(lab.nodes[2]) > 0


def check_readable(found: Completeness) -> None:
    """All of it, up to the moment when it broke off."""
    assert found.records > 0
    assert (found.missing, found.duplicates, found.corrupt) == (0, 0, 0)
    assert found.torn <= 1


@pytest.fixture(scope="module")
def blips(standing_lab: Lab) -> Drill:
    """A run in which n06 is cut off while files are uploaded to it, n05 hangs for a while, and n04 loses what
    ties its supervisor to the connection."""
    untied, hanging, cut = standing_lab.nodes[3:]
    shutil.rmtree(cut.home / ".rove", ignore_errors=True)
    with Drill(standing_lab, "blips", lease="20s") as drill:
        with cut.slow_cable(SLOW):
            drill.until(lambda: stored(cut) > 50_000, "the upload is under way")
            cut.cut()
        drill.reach("measure")
        untied.kill("node_agent.supervisor", "attach")
        hanging.hang()
        hanging.cut()
        log = drill.on_node(hanging) / "supervisor.log"
        drill.until(lambda: "nobody owns the run" in log.read_text(), "the supervisor has lost its owner")
        hanging.resume()
        drill.finish()
    return drill


def stored(node: LabNode) -> int:
    paths = list((node.home / ".rove").rglob("*"))
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_a_connection_cut_during_the_upload_is_made_again(lab: Lab, blips: Drill) -> None:
    assert blips.exit_code == EXIT_OK, blips.verdict
    check_whole(blips, [lab.node("n06")])


def test_a_node_whose_sshd_hung_is_attached_again(lab: Lab, blips: Drill) -> None:
    assert blips.exit_code == EXIT_OK, blips.verdict
    check_whole(blips, lab.nodes)
    assert owners(blips, lab.node("n05")) > 1


def test_a_supervisor_without_its_bridge_is_attached_again(lab: Lab, blips: Drill) -> None:
    check_whole(blips, [lab.node("n04")])
    assert owners(blips, lab.node("n04")) > 1


def owners(drill: Drill, node: LabNode) -> int:
    """How often its supervisor was attached to."""
    return (drill.here(node) / "supervisor.log").read_text().count("the run has a new owner")


def test_a_cut_during_collection_loses_nothing(lab: Lab) -> None:
    """n05 is cut off once, and the run itself fetches the rest; n06 stays away, and is fetched later."""
    once, later = lab.nodes[4:]
    with (
        Drill(lab, "collecting", quorum=0.5) as drill,
        ExitStack() as stack,
    ):
        drill.reach("measure")
        for node in (once, later):
            stack.enter_context(node.slow_cable(SLOW))
            node.write(drill.on_node(node) / "large", os.urandom(LARGE))
        drill.reach("collect")
        drill.until(lambda: arriving(drill, once) and arriving(drill, later), "the large files arrive")
        kept = contents(drill.on_node(later))
        once.cut()
        with later.hanging():
            later.cut()
            drill.finish()
    assert drill.outcome("collect", once).status is Status.OK
    assert drill.completeness(once).complete and not once.runs
    assert drill.outcome("collect", later).status is Status.UNREACHABLE
    assert contents(drill.on_node(later)) == kept, "deleted only after verification"
    assert drill.exit_code == EXIT_INVALID
    assert drill.collect_later() == {later.name: "collected"}
    assert contents(drill.here(later)).items() >= kept.items()
    check_whole(drill, lab.nodes[:4])
    assert drill.completeness(later).complete and not later.runs
    assert drill.verdict["verdict"] == "valid", "all of it is here now"


def arriving(drill: Drill, node: LabNode) -> bool:
    """Some of the large file is here."""
    return any(path.stat().st_size > 0 for path in drill.here(node).rglob("*large*"))


def test_an_orchestrator_that_is_killed_is_not_waited_for(lab: Lab) -> None:
    """The lease ends; nodes stop by themselves, restore what they changed, and keep what they recorded."""
    with Drill(lab, "killed", duration="60s", lease="6s") as drill:
        drill.reach("measure")
        drill.until(lambda: all(records_on(drill, node) for node in lab.nodes), "all have recorded something")
        assert all(node.processes() for node in lab.nodes)
        drill.kill()
    wait_until(lambda: not any(node.processes() for node in lab.nodes), "the leases end")
    left = [what for what in lab.leftovers() if "file .rove/runs/" not in what]
    assert left == [], "only what is recorded stays"
    kept = {node.name: contents(drill.on_node(node)) for node in lab.nodes}
    down = lab.rove("down", drill.run.id)
    assert down.returncode == 0, down.stdout + down.stderr
    assert {node.name: contents(drill.on_node(node)) for node in lab.nodes} == kept
    assert drill.collect_later() == {node.name: "collected" for node in lab.nodes}
    for node in lab.nodes:
        assert contents(drill.here(node)).items() >= kept[node.name].items()
        assert drill.completeness(node).complete
    assert drill.verdict["verdict"] == "failed"


def test_what_a_killed_orchestrator_left_can_be_ended_at_once(lab: Lab) -> None:
    """Long before the leases end; of a node that is off it is said when it will end."""
    *others, off = lab.nodes
    with Drill(lab, "orphaned", duration="60s", lease="10min") as drill:
        drill.reach("measure")
        drill.until(lambda: all(records_on(drill, node) for node in lab.nodes), "all have recorded something")
        drill.kill()
    with lab.without_power(off):
        down = lab.rove("down", drill.run.id)
        assert down.returncode == EXIT_FAILED
        assert f"{off.name}: unreachable" in down.stdout and "within 600 s" in down.stdout
        assert not any(node.processes() for node in others)
    kept = {node.name: contents(drill.on_node(node)) for node in lab.nodes}
    assert lab.rove("down", drill.run.id).returncode == EXIT_OK
    assert drill.collect_later() == {node.name: "collected" for node in lab.nodes}
    for node in lab.nodes:
        assert contents(drill.here(node)).items() >= kept[node.name].items()
    assert all(drill.completeness(node).complete for node in others)
    assert drill.completeness(off).missing == 0, "what was on its disk is here"
