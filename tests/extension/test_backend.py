"""A backend of somebody else: the simulator under another name, with traits of its own."""

from pathlib import Path

import pytest

from node_agent.extensions import ExtensionError
from orchestrator.backends.sim.backend import SimBackend
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend, Outcomes, Progress
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import BACKENDS, BackendKind, Traits
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import Finding
from tests.extension.harness import Rove, installed, refused, registered, run_of, written


class ToyBackend(SimBackend):
    def __init__(self, run_id: str, directory: Path, journal: Journal) -> None:
        super().__init__(run_id, directory, journal)
        self._mark = directory / "toy.txt"

    async def up(self, progress: Progress) -> Outcomes:
        self._mark.write_text("up")
        return await super().up(progress)


def create(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    return ToyBackend(run_id, directory, journal)


def findings(experiment: Experiment) -> list[Finding]:
    if len(experiment.topology.node_names) <= 4:
        return []
    return [Finding(("topology", "nodes"), "the toy has room for four nodes")]


TOY = BackendKind(
    summary="a toy",
    traits=Traits(virtual_time=True, knows_links=True),
    create=create,
    timeouts={"up": 45.0},
    findings=findings,
)


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(BACKENDS, toy=TOY):
        run = run_of(rove, written(tmp_path, backend="toy"))
    assert (run / "toy.txt").read_text() == "up"
    assert '"clock": "virtual"' in (run / "manifest.json").read_text()
    assert "up: 45.0" in (run / "spec.yaml").read_text()


def test_offered_by_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_backend.py").write_text("from tests.extension.test_backend import TOY\n")
    with installed(tmp_path, BACKENDS, {"toy": "somebodys_backend:TOY"}):
        run = run_of(rove, written(tmp_path, backend="toy"))
    assert (run / "toy.txt").read_text() == "up"


def test_its_traits_are_heeded(rove: Rove, tmp_path: Path) -> None:
    with registered(BACKENDS, toy=TOY):
        said = refused(
            rove, written(tmp_path, backend="toy", faults=[{"at": "1s", "silence": {"node": "n01"}}])
        )
        assert "nobody can silence a radio with backend toy" in said
        said = refused(rove, written(tmp_path, backend="toy", routing="babel"))
        assert "babel does not run on the backend toy" in said


def test_its_own_checks_are_heeded(rove: Rove, tmp_path: Path) -> None:
    with registered(BACKENDS, toy=TOY):
        said = refused(rove, written(tmp_path, {"nodes": 5}, backend="toy"))
    assert "topology.nodes: the toy has room for four nodes" in said


def test_an_unknown_one(rove: Rove, tmp_path: Path) -> None:
    with registered(BACKENDS, toy=TOY):
        said = refused(rove, written(tmp_path, backend="toi"))
    assert 'backend: "toi" is not known here; expected sim, netns, ssh, core, toy or auto' in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TOY = 3", "toy is not a backend: it must be a orchestrator.spec.backends.BackendKind"),
        ("TOY = 1 / 0", "somebodys_backend.py, line 1: ZeroDivisionError"),
        ("ROVE_API = 7\nTOY = 3", "was written for version 7 of Rove's extension points"),
        (
            "from dataclasses import replace\nfrom tests.extension.test_backend import TOY\n"
            "TOY = replace(TOY, findings=lambda experiment: experiment.nothing)",
            "backend: backend toy: somebodys_backend.py, line 3: AttributeError",
        ),
    ],
)
def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "somebodys_backend.py").write_text(text + "\n")
    with installed(tmp_path, BACKENDS, {"toy": "somebodys_backend:TOY"}):
        assert message in refused(rove, written(tmp_path, backend="toy"))


def test_two_of_one_name(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_backend.py").write_text("from tests.extension.test_backend import TOY\n")
    with installed(tmp_path, BACKENDS, {"sim": "somebodys_backend:TOY"}):
        assert "there are several backend 'sim'" in refused(rove, written(tmp_path))
    with pytest.raises(ExtensionError, match="there is a backend 'sim' already"):
        BACKENDS.register("sim", TOY)
