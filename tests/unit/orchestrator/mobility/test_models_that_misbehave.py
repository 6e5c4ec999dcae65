"""A user's model that exits or never returns is an error of the file that names it, with file and line."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import BadInput
from orchestrator.mobility.generate import generate_trace
from orchestrator.radio.path_loss.build import path_loss_of, read_path_loss
from orchestrator.spec import foreign_calls
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.topology import Topology
from tests.unit.rove_process import rove
from tests.unit.specs import topology

MOBILITY = """
import sys
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.spec.mobility import MobilityModel

class Endless(tuple):
    def __iter__(self):
        while True:
            yield Waypoint(0.0, 1.0, 1.0)

class Model(MobilityModel):
    def {method}(self, *arguments):
        {deed}
"""
TRACE = "\n    def trace(self, nodes, area, seed, until):\n        return Trace({})\n"
LOSS = """
import sys
from orchestrator.spec.pathloss import PathLossModel

class Model(PathLossModel):
    def loss_db(self, distance_m):
        {deed}
"""
DEEDS = {
    "sys.exit(0)": "SystemExit: 0",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "while True: pass": "it takes more than 200 ms",
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_calls, "LIMIT_S", 0.2)


def moving(folder: Path, deed: str, method: str = "trace") -> Topology:
    code = MOBILITY.format(method=method, deed=deed)
    (folder / "mine.py").write_text(code if method == "trace" else code + TRACE)
    document = topology(nodes=2, mobility={"model": "mine.py:Model"})
    return Topology.model_validate(document, context={FOLDER: folder})


@pytest.mark.parametrize("deed", DEEDS)
def test_a_trace(tmp_path: Path, deed: str) -> None:
    with pytest.raises(BadInput, match=rf"mine\.py, line 13: {DEEDS[deed]}"):
        generate_trace(moving(tmp_path, deed), 1, 10.0)


def test_a_path_without_end(tmp_path: Path) -> None:
    found = moving(tmp_path, "return Trace({node: Endless() for node in arguments[0]})")
    with pytest.raises(BadInput, match=r"mine\.py, line \d+: it takes more than 200 ms"):
        generate_trace(found, 1, 10.0)


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("method", ["fixed_positions", "mean_speed"])
def test_what_planning_asks(tmp_path: Path, deed: str, method: str) -> None:
    found = moving(tmp_path, deed, method)
    with pytest.raises(BadInput, match=rf"mine\.py, line 13: {DEEDS[deed]}"):
        found.static_positions() if method == "fixed_positions" else found.mean_speed()


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("method", ["findings", "findings_for"])
def test_what_validation_asks(tmp_path: Path, deed: str, method: str) -> None:
    with pytest.raises(ValueError, match=rf"mine\.py, line 13: {DEEDS[deed]}"):
        moving(tmp_path, deed, method)


@pytest.mark.parametrize("deed", DEEDS)
def test_a_path_loss(tmp_path: Path, deed: str) -> None:
    (tmp_path / "mine.py").write_text(LOSS.format(deed=deed))
    loss = path_loss_of(read_path_loss({"model": f"{tmp_path}/mine.py:Model"}), ("a", "b"))
    with pytest.raises(BadInput, match=rf"mine\.py, line 7: {DEEDS[deed]}"):
        loss.loss_db(np.ones((2, 2)))


def test_ctrl_c_is_no_failure_of_the_model(tmp_path: Path) -> None:
    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        foreign_calls.called("model", None, press)
    assert signal.getsignal(signal.SIGINT) is before


def test_validate_does_not_succeed_in_silence(tmp_path: Path) -> None:
    moving(tmp_path, "sys.exit(0)")
    network: dict[str, Any] = topology(nodes=4, mobility={"model": "mine.py:Model"})
    document = {"name": "x", "topology": network, "query": "synthetic_chain", "duration": "5s"}
    (tmp_path / "x.yaml").write_text(json.dumps({**document, "backend": "sim"}))
    done = rove(tmp_path, "validate", str(tmp_path / "x.yaml"))
    assert done.returncode == 2, done.stdout
    assert "mine.py, line 13: SystemExit: 0" in done.stdout + done.stderr
