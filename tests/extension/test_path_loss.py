"""A path-loss model of somebody else, in virtual time and as the radio process of namespaces is told it."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from orchestrator.planning.load import load_experiment
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.path_loss.base import Matrix, losses_at
from orchestrator.spec.pathloss import PATH_LOSS_MODELS, PathLossModel
from tests.extension.harness import Rove, installed, records, refused, registered, run_of, written


class Wall(PathLossModel):
    """Nothing arrives behind a wall: beyond a distance."""

    beyond: float = 120.0

    def loss_db(self, distance_m: Matrix) -> Matrix:
        return np.where(distance_m > self.beyond, np.inf, 60.0)


HEAD = """\
import numpy as np
from orchestrator.spec.pathloss import PathLossModel


class Model(PathLossModel):
    beyond: float = 120.0

    def loss_db(self, distance_m):
"""
WALL = "        return np.where(distance_m > self.beyond, np.inf, 60.0)\n"
TIMED = """\
        return np.full(distance_m.shape, 60.0)


class Off:
    def loss_db(self, distance_m):
        return np.full(distance_m.shape, np.inf)


class Jammed(Model):
    changes = True

    def path_loss(self, nodes):
        return Jammer(self)


class Jammer:
    def __init__(self, model):
        self.loss_db, self.on, self.off = model.loss_db, model, Off()

    def at(self, t):
        return self.on if t < 1.0 else self.off
"""


def topology(model: str, **keys: Any) -> dict[str, Any]:
    return {"radio": {"model": "80211b", "pathloss": {"model": model, **keys}}}


def own(folder: Path, body: str = WALL, model: str = "my_losses.py:Model", **keys: Any) -> Path:
    (folder / "my_losses.py").write_text(HEAD + body)
    return written(folder, topology(model, **keys))


def links(run: Path) -> set[str]:
    """Of a grid of four nodes, 100 m apart."""
    return {f"{each['src']}-{each['dst']}" for each in records(run / "radio" / "links.jsonl") if each["up"]}


SIDES = {"n01-n02", "n02-n01", "n01-n03", "n03-n01", "n02-n04", "n04-n02", "n03-n04", "n04-n03"}
DIAGONALS = {"n01-n04", "n04-n01", "n02-n03", "n03-n02"}


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(PATH_LOSS_MODELS, wall=Wall):
        assert links(run_of(rove, written(tmp_path, topology("wall")))) == SIDES


def test_named_by_its_file(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, own(tmp_path, beyond=150.0))
    assert links(run) == SIDES | DIAGONALS
    assert (run / "pathloss" / "my_losses.py").exists()
    assert links(run_of(rove, run / "spec.yaml")) == SIDES | DIAGONALS


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_losses.py").write_text(HEAD + WALL)
    with installed(tmp_path, PATH_LOSS_MODELS, {"wall": "somebodys_losses:Model"}):
        assert links(run_of(rove, written(tmp_path, topology("wall")))) == SIDES


def test_one_that_changes_by_itself(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, own(tmp_path, TIMED, "my_losses.py:Jammed"))
    gone = [each for each in records(run / "radio" / "links.jsonl") if not each["up"]]
    assert len(gone) == 12 and len({each["t_ns"] for each in gone}) == 1


def test_the_radio_process_of_namespaces_is_told_it(tmp_path: Path) -> None:
    found = load_experiment(own(tmp_path, TIMED, "my_losses.py:Jammed")).topology
    choice, _ = air_settings(found)
    told = msgspec.json.decode(msgspec.json.encode(choice), type=RadioChoice).radio().path_loss
    distance_m = np.full((4, 4), 10.0)
    assert (losses_at(told, 0.0).loss_db(distance_m) == 60.0).all()
    assert np.isinf(losses_at(told, 2.0).loss_db(distance_m)).all()
    assert losses_at(told, 2.0) is losses_at(told, 3.0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("        return 1 / 0", "my_losses.py, line 9: ZeroDivisionError: division by zero"),
        (
            "        return distance_m * np.nan",
            "my_losses.py, line 8: loss_db() of the path-loss model returned losses that are not numbers",
        ),
        (
            "        return -distance_m",
            "my_losses.py, line 8: loss_db() of the path-loss model returned losses below",
        ),
        ("        return 'far'", "loss_db() of the path-loss model returned str and not an array of numbers"),
        ("        return np.zeros(3)", "returned an array of shape (3,) for distances of shape (4, 4)"),
        (
            WALL + "\n    def path_loss(self, nodes):\n        return 7",
            "my_losses.py, line 11: path_loss() of the path-loss model returned int, which has no loss_db()",
        ),
        ("        return ][", "my_losses.py, line 9: unmatched ']'"),
        (
            WALL + "\nclass Model(PathLossModel): pass",
            "the path-loss model my_losses.py:Model does not define loss_db",
        ),
        (WALL + "\nROVE_API = 0", "my_losses.py was written for version 0 of Rove's extension points"),
    ],
)
def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path, body: str, message: str) -> None:
    said = refused(rove, own(tmp_path, body))
    assert message in said
    assert "topology.radio.pathloss.model: " in said and "1 problem" in said


def test_no_such_file(rove: Rove, tmp_path: Path) -> None:
    said = refused(rove, own(tmp_path, model="losses.py:Model"))
    assert 'topology.radio.pathloss.model: "losses.py": no such file' in said


def test_two_of_one_name(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_losses.py").write_text(HEAD + WALL)
    offers = {"two_ray": "somebodys_losses:Model"}
    with installed(tmp_path, PATH_LOSS_MODELS, offers):
        said = refused(rove, written(tmp_path, topology("two_ray")))
    assert "there are several path-loss model 'two_ray': of somebodys (somebodys_losses:Model)" in said
