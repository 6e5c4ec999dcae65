"""Link losses from files: read, followed over time, taken along by a run. Bad files are in bad_files/."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from node_agent.ports.virtual.loop import VirtualLoop
from orchestrator.backends.sim.air import make_air
from orchestrator.mobility.generate import generate_trace
from orchestrator.mobility.trace_file import TraceError
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_experiment
from orchestrator.planning.radio_outlook import look_ahead, reach
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.path_loss import loss_file
from orchestrator.radio.path_loss.loss_file import LossChange, read_losses
from orchestrator.radio.path_loss.trace import LinkTrace
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.topology import Topology
from tests.unit.specs import chain, experiment, topology

NODES = ("a", "b", "c")
FIXED = "src,dst,loss_db\na,b,80\na,c,90\nc,a,95\n"
TIMED = "t,src,dst,loss_db\n0,a,b,80\n0, b,c, 80\n\n# the far link breaks\n5,b,c,inf\n9,b,c,85\n"
STATIC = {"model": "static", "scatter": True}


def written(folder: Path, model: str, text: str) -> Experiment:
    (folder / "losses.csv").write_text(text)
    radio = {"model": "80211b", "pathloss": {"model": model, "file": "losses.csv"}}
    document: dict[str, Any] = experiment(query=chain(1)).resolved()
    document["topology"] = topology(nodes=list(NODES), mobility=STATIC, radio=radio)
    (folder / "losses.yaml").write_text(to_yaml(document))
    return load_experiment(folder / "losses.yaml")


def losses(found: Topology) -> Any:
    return air_settings(found).radio.radio().path_loss


def test_a_file_from_a_spreadsheet_is_read(tmp_path: Path) -> None:
    file = tmp_path / "losses.csv"
    file.write_bytes(b"\xef\xbb\xbfsrc,dst,loss_db\r\na,b,80\r\n")
    assert read_losses(file, NODES, timed=False)[0] == LossChange(0.0, 0, 1, 80.0)


def test_a_matrix_holds_both_ways_unless_the_way_back_is_listed(tmp_path: Path) -> None:
    loss = losses(written(tmp_path, "matrix", FIXED).topology).loss_db(np.zeros((3, 3)))
    assert loss[0, 1] == loss[1, 0] == 80.0
    assert (loss[0, 2], loss[2, 0]) == (90.0, 95.0)
    assert np.isinf(loss[1, 2]) and np.isinf(loss[2, 1])


def test_a_trace_changes_link_by_link(tmp_path: Path) -> None:
    trace = losses(written(tmp_path, "trace", TIMED).topology)
    assert isinstance(trace, LinkTrace)
    over_time = [trace.at(t).loss_db(np.zeros((3, 3))) for t in (0.0, 5.0, 8.99, 9.0, 1000.0)]
    assert [loss[2, 1] for loss in over_time] == [80.0, math.inf, math.inf, 85.0, 85.0]
    assert {loss[0, 1] for loss in over_time} == {80.0}


def test_a_direction_that_is_listed_speaks_for_itself(tmp_path: Path) -> None:
    file = tmp_path / "losses.csv"
    file.write_text("t,src,dst,loss_db\n0,a,b,80\n7,b,a,90\n")
    assert read_losses(file, NODES, timed=True) == (LossChange(0, 0, 1, 80), LossChange(7, 1, 0, 90))


def test_more_than_fits_into_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_file, "MOST_CELLS", 20)
    file = tmp_path / "losses.csv"
    file.write_text(TIMED)
    with pytest.raises(TraceError, match="3 moments: at most 2 are kept for 3 nodes"):
        read_losses(file, NODES, timed=True)


def test_the_radio_process_is_told_the_same(tmp_path: Path) -> None:
    choice = air_settings(written(tmp_path, "trace", TIMED).topology).radio
    again = msgspec.json.decode(msgspec.json.encode(choice), type=RadioChoice)
    assert again == choice
    told, meant = again.radio().path_loss, choice.radio().path_loss
    assert isinstance(told, LinkTrace) and isinstance(meant, LinkTrace)
    for t in (0.0, 6.0, 10.0):
        assert np.array_equal(told.at(t).loss_db(np.zeros((3, 3))), meant.at(t).loss_db(np.zeros((3, 3))))


def test_links_come_and_go_in_the_simulator(tmp_path: Path) -> None:
    found = written(tmp_path, "trace", TIMED).topology
    positions = dict.fromkeys(NODES, (0.0, 0.0))
    loop = VirtualLoop()
    air = make_air(found, loop, positions, seed=1)
    seen = []
    for second in (0, 5, 9):
        loop.run_until_ns(second * 10**9)
        seen.append([sorted(peers) for peers in air.move(positions, second).values()])
    assert seen == [[["b"], ["a", "c"], ["b"]], [["b"], ["a"], []], [["b"], ["a", "c"], ["b"]]]
    loop.close()


def test_the_outlook_follows_a_trace_though_nobody_moves(tmp_path: Path) -> None:
    found = written(tmp_path, "trace", TIMED).topology
    pairs = [(("camera", "a"), ("screen", "c"))]
    outlook = look_ahead(found, generate_trace(found, 1, 10.0), 10.0, pairs)
    assert not outlook.static
    (pair,) = outlook.pairs
    assert (pair.connected, pair.hops) == (0.6, {2: 1.0})
    assert set(outlook.ranges_m.values()) == {None} and reach(found) is None


@pytest.mark.parametrize(("model", "text"), [("matrix", FIXED), ("trace", TIMED)])
def test_a_run_takes_its_losses_along(tmp_path: Path, model: str, text: str) -> None:
    original = written(tmp_path, model, text)
    run = tmp_path / "run"
    for name, content in bundle(original).items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(content)
    (tmp_path / "losses.csv").unlink()
    assert load_experiment(run / "spec.yaml") == original
    (run / "pathloss/losses.csv").write_text(text.replace("80", "81"))
    assert load_experiment(run / "spec.yaml") != original
