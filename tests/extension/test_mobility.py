"""A mobility model of somebody else: registered in the process, named by its file, offered by a package."""

from math import cos, pi, sin
from pathlib import Path

import pytest

from orchestrator.model.trace import Trace, Waypoint
from orchestrator.spec.area import Area
from orchestrator.spec.mobility import MOBILITY_MODELS, MobilityModel
from orchestrator.spec.units import PositiveLength
from tests.extension.harness import Rove, installed, records, refused, registered, run_of, written


class Circle(MobilityModel):
    """Nodes stand on a circle around the middle of the area."""

    radius: PositiveLength = 50.0

    def trace(self, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Trace:
        angles = [2 * pi * number / len(nodes) for number in range(len(nodes))]
        places = [
            (area.width / 2 + self.radius * cos(a), area.height / 2 + self.radius * sin(a)) for a in angles
        ]
        return Trace({node: (Waypoint(0.0, *place),) for node, place in zip(nodes, places, strict=True)})


HEAD = """\
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.units import PositiveLength


class Model(MobilityModel):
    radius: PositiveLength = 50.0

    def trace(self, nodes, area, seed, until):
"""
LINE = """\
        step = area.width / len(nodes)
        return Trace({node: (Waypoint(0.0, step * i, self.radius),) for i, node in enumerate(nodes)})
"""


def own(folder: Path, body: str = LINE, head: str = HEAD, model: str = "my_mobility.py:Model") -> Path:
    (folder / "my_mobility.py").write_text(head + body)
    return written(folder, {"mobility": {"model": model, "radius": "20 m"}})


def places(run: Path) -> dict[str, tuple[float, float]]:
    return {each["node"]: (each["x"], each["y"]) for each in records(run / "radio" / "positions.jsonl")}


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(MOBILITY_MODELS, circle=Circle):
        run = run_of(rove, written(tmp_path, {"mobility": {"model": "circle", "radius": "80 m"}}))
    assert places(run) == {"n01": (280, 200), "n02": (200, 280), "n03": (120, 200), "n04": (200, 120)}


def test_named_by_its_file(rove: Rove, tmp_path: Path) -> None:
    run = run_of(rove, own(tmp_path))
    assert places(run) == {"n01": (0, 20), "n02": (100, 20), "n03": (200, 20), "n04": (300, 20)}
    again = run_of(rove, run / "spec.yaml")  # the file goes with the run
    assert (run / "mobility" / "my_mobility.py").exists()
    assert places(again) == places(run)


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_models.py").write_text(HEAD + LINE)
    with installed(tmp_path, MOBILITY_MODELS, {"row": "somebodys_models:Model"}):
        file = written(tmp_path, {"mobility": {"model": "row"}})
        assert rove("validate", str(file)).code == 0
        assert places(run_of(rove, file))["n04"] == (300, 50)


def test_its_parameters_are_those_of_the_file(rove: Rove, tmp_path: Path) -> None:
    file = own(tmp_path)
    file.write_text(file.read_text().replace("radius: 20 m", "raduis: 20 m"))
    said = refused(rove, file)
    assert "topology.mobility.raduis: unknown key" in said and 'did you mean "radius"?' in said


def test_a_plan_tells_of_it(rove: Rove, tmp_path: Path) -> None:
    planned = rove("plan", str(own(tmp_path)))
    assert planned.code == 0 and "my_mobility.py:Model, radius 20.0" in planned.out


def test_no_such_file(rove: Rove, tmp_path: Path) -> None:
    said = refused(rove, own(tmp_path, model="my_mobilty.py:Model"))
    assert 'topology.mobility.model: "my_mobilty.py": no such file' in said
    assert 'did you mean "my_mobility.py"?' in said


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("        return ][", "my_mobility.py, line 10: unmatched ']'"),
        ("        pass\n\nimport no_such_module", "my_mobility.py, line 12: ModuleNotFoundError"),
        ("        return 1 / 0", "my_mobility.py, line 10: ZeroDivisionError: division by zero"),
        ("        return {}", "my_mobility.py, line 9: trace() of the mobility model returned dict and not"),
        (
            "        return Trace({})",
            "line 9: trace() of the mobility model returned no path for n01",
        ),
        (
            "        return Trace({node: (Waypoint(0.0, float('nan'), 0.0),) for node in nodes})",
            "my_mobility.py, line 9: trace() of the mobility model returned a path of n01 that has a number "
            "that is not finite",
        ),
        (
            "        return Trace({node: (Waypoint(0.0, 1e6, 0.0),) for node in nodes})",
            "that leaves the area: (1e+06, 0) at 0 s",
        ),
        (
            "        return Trace({node: (Waypoint(1.0, 0, 0), Waypoint(0.0, 0, 0)) for node in nodes})",
            "that goes back in time: 0 s after 1 s",
        ),
        ("        return Trace({node: () for node in nodes})", "a path of n01 that is empty"),
        (
            "        pass\n\n    def model_post_init(self, context):\n        raise RuntimeError('no')",
            "my_mobility.py, line 13: RuntimeError: no",
        ),
        (
            "        pass\n\n    def findings_for(self, nodes, area):\n        return nodes['x']",
            "my_mobility.py, line 13: TypeError",
        ),
        ("        pass\n\nModel = 3", "my_mobility.py:Model is not a mobility model: derive a class from"),
        ("        pass\n\ndel Model", "my_mobility.py defines no Model"),
        (
            "        pass\n\nROVE_API = 99",
            "my_mobility.py was written for version 99 of Rove's extension points, and this is version 1",
        ),
    ],
)
def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path, body: str, message: str) -> None:
    said = refused(rove, own(tmp_path, body))
    assert message in said
    assert said.count("topology.mobility") == 1 and "1 problem" in said


def test_two_of_one_name(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_models.py").write_text(HEAD + LINE)
    file = written(tmp_path, {"mobility": {"model": "static"}})
    with installed(tmp_path, MOBILITY_MODELS, {"static": "somebodys_models:Model"}):
        said = refused(rove, file)
    assert "there are several mobility model 'static': of somebodys (somebodys_models:Model)" in said


def test_a_package_made_for_another_version(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_models.py").write_text(HEAD + LINE + "\n\nROVE_API = 2\n")
    with installed(tmp_path, MOBILITY_MODELS, {"row": "somebodys_models:Model"}):
        said = refused(rove, written(tmp_path, {"mobility": {"model": "row"}}))
    assert "somebodys (somebodys_models:Model) was written for version 2 of Rove's extension points" in said
