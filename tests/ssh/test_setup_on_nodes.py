"""Nodes that are set up for a run by root, over SSH: emulated links, and all as before whoever was killed."""

import os
from typing import Any

import pytest
import yaml

from orchestrator.runs.backend import Status
from tests.ssh.drill import TEST_S, Drill
from tests.ssh.lab import Lab

pytestmark = pytest.mark.timeout(TEST_S)


def set_up(lab: Lab, run: str) -> str:
    """A topology like the laboratory's, with links that are worse than its radio's."""
    document: dict[str, Any] = yaml.safe_load(lab.topology.read_text())
    document["defaults"]["setup"] = "lan"
    document["links"] = {"others": {"loss": "2%"}}
    file = lab.folder / f"{run}.topology.yaml"
    file.write_text(yaml.safe_dump(document))
    return os.path.relpath(file, lab.folder)


def test_a_killed_set_up_is_undone_and_the_others_go_on(lab: Lab) -> None:
    kept, unkept, bare = lab.nodes[3:]
    with Drill(lab, "set-up", topology=set_up(lab, "set-up"), duration="4s", quorum=0.5) as drill:
        drill.reach("measure")
        for node in lab.nodes:
            assert "table netdev rove-set-up" in node.as_root("nft", "list", "tables")
        bare.kill("node_agent.host.setup", "--order")
        for module in ("node_agent.supervisor", "node_agent.host.setup"):
            unkept.kill("-m", module)
        drill.finish()
    assert drill.outcome("stop", kept).status is Status.OK
    assert "set-up" in drill.outcome("measure", bare).reason
    assert drill.outcome("measure", unkept).status is Status.FAILED
    assert lab.leftovers() == []
