"""Drills: nodes that are in trouble when a run starts. Each has its outcome, and the others go on."""

import shutil

import pytest

from orchestrator.errors import EXIT_INVALID
from orchestrator.runs.backend import Status
from tests.ssh.drill import TEST_S, Drill
from tests.ssh.lab import Lab, LabNode

pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]
SMALL_DISK = 300_000
"""There is no room even for the agent's own sources."""
OLD_PYTHON = "#!/bin/sh\necho 309 3.9\n"
"""What it says when asked for its version, and whatever else it is asked."""


@pytest.fixture(scope="module")
def away(standing_lab: Lab) -> Drill:
    """A run while n04 is off, n05 hangs, and n06 has another host key."""
    off, hanging, other = standing_lab.nodes[3:]
    with (
        standing_lab.without_power(off),
        other.other_host_key(),
        hanging.hanging(),
        Drill(standing_lab, "away", quorum=0.5) as drill,
    ):
        drill.finish()
    return drill


@pytest.fixture(scope="module")
def unfit(standing_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Drill:
    """A run while n04 has no Python that would do, n05 no room on its disk, and n06 no rights."""
    python, disk, sudo = standing_lab.nodes[3:]
    old = tmp_path_factory.mktemp("old") / "python3"
    old.write_text(OLD_PYTHON)
    old.chmod(0o755)
    with (
        python.instead_of("/usr/bin/python3", old),
        disk.small_disk(SMALL_DISK),
        sudo.without_sudo(),
        Drill(standing_lab, "unfit", quorum=0.5) as drill,
    ):
        drill.finish()
    return drill


@pytest.fixture(scope="module")
def slow(standing_lab: Lab) -> Drill:
    """A run while n06 would take minutes to be deployed to."""
    node = standing_lab.node("n06")
    shutil.rmtree(node.home / ".rove", ignore_errors=True)
    changes = {"quorum": 0.5, "timeouts": {"up": "40s"}}
    with node.slow_cable("50kbit"), Drill(standing_lab, "slow", **changes) as drill:
        drill.finish()
    return drill


def check_others(drill: Drill, lab: Lab) -> None:
    """The query ran among them, all that they recorded is here, and the run says that it was not whole."""
    assert drill.exit_code == EXIT_INVALID, drill.verdict
    for node in lab.nodes[:3]:
        assert drill.outcome("collect", node).status is Status.OK
        assert drill.completeness(node).complete
    assert drill.delivered(lab.nodes[2]) > 0


def check_trouble(drill: Drill, node: LabNode, status: Status, reason: str) -> None:
    for phase in ("up", "measure", "collect"):
        outcome = drill.outcome(phase, node)
        assert outcome.status is status
        assert reason in outcome.reason
    assert not drill.here(node).exists() or drill.completeness(node).records == 0


def test_a_node_that_is_off(lab: Lab, away: Drill) -> None:
    check_trouble(away, lab.node("n04"), Status.UNREACHABLE, "no answer from")
    check_others(away, lab)


def test_a_node_whose_sshd_hangs(lab: Lab, away: Drill) -> None:
    check_trouble(away, lab.node("n05"), Status.UNREACHABLE, "does not answer")
    check_others(away, lab)


def test_a_node_whose_host_key_has_changed(lab: Lab, away: Drill) -> None:
    node = lab.node("n06")
    check_trouble(away, node, Status.FAILED, "host key has changed")
    assert lab.known_hosts.key_of(node.name) == node.server.host_key, "never silently accepted"
    check_others(away, lab)


def test_a_node_without_a_python_that_would_do(lab: Lab, unfit: Drill) -> None:
    check_trouble(unfit, lab.node("n04"), Status.FAILED, "Python 3.11 or later")
    check_others(unfit, lab)


def test_a_node_with_a_full_disk(lab: Lab, unfit: Drill) -> None:
    check_trouble(unfit, lab.node("n05"), Status.FAILED, "no room")
    check_others(unfit, lab)


def test_a_node_where_sudo_is_refused(lab: Lab, unfit: Drill) -> None:
    check_trouble(unfit, lab.node("n06"), Status.FAILED, "sudo")
    check_others(unfit, lab)


def test_a_node_that_takes_too_long_to_deploy_to(lab: Lab, slow: Drill) -> None:
    check_trouble(slow, lab.node("n06"), Status.FAILED, "not deployed to within 30 s")
    check_others(slow, lab)
