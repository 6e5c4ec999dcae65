"""A real `rove` in this process, small experiments for it, and packages that are installed for one test."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import yaml

from node_agent.extensions import Registry
from orchestrator.cli.main import run as main

ROOT = Path(__file__).parents[2]


class Finished(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Rove = Callable[..., Finished]


@pytest.fixture
def rove(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rove:
    """`rove VERB …` in this process, with a directory of its own for runs."""
    monkeypatch.setenv("ROVE_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))

    def run(*arguments: str) -> Finished:
        capsys.readouterr()
        with patch.object(sys, "argv", ["rove", *arguments]):
            try:
                main()
                code = 0
            except SystemExit as ending:
                code = ending.code if isinstance(ending.code, int) else 0
        return Finished(code, *capsys.readouterr())

    return run


def run_of(rove: Rove, file: Path) -> Path:
    """The directory of a run of ``file`` that must be valid."""
    finished = rove("run", str(file), "--no-analyze", "--json")
    assert finished.code == 0, finished.err + finished.out
    return Path(json.loads(finished.out)["directory"])


def refused(rove: Rove, file: Path) -> str:
    """What `rove run` says to an experiment that it does not begin: exit code 2, and nothing is made."""
    finished = rove("run", str(file), "--no-analyze")
    assert finished.code == 2, finished.err + finished.out
    assert not Path(os.environ["ROVE_RUNS_DIR"]).exists()
    assert "Traceback" not in finished.err
    return finished.err


def written(folder: Path, topology: Mapping[str, Any] | None = None, **changes: Any) -> Path:
    """A small experiment: a chain of operators on four nodes, for three seconds."""
    document = {
        "name": "small",
        "topology": {
            "name": "four",
            "nodes": 4,
            "area": "400 m x 400 m",
            "mobility": {"model": "static", "grid": {"columns": 2, "spacing": "100 m"}},
            "radio": {"model": "disc", "range": "1000 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
            **(topology or {}),
        },
        "routing": "ground_truth",
        "query": {"name": "synthetic_chain", "operators": 1},
        "duration": "3s",
        **changes,
    }
    file = folder / "small.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def _installed(folder: Path, registry: Registry[Any], offers: Mapping[str, str], package: str) -> Any:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[{registry.group}]", *(f"{name} = {value}" for name, value in offers.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    known = set(sys.modules)
    with patch.object(sys, "path", [str(folder), *sys.path]), patch.dict(os.environ, {"PYTHONPATH": path}):
        registry.refresh()
        try:
            yield
        finally:
            registry.refresh()
            for name in set(sys.modules) - known:
                if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[name]
    registry.refresh()


def installed(
    folder: Path, registry: Registry[Any], offers: Mapping[str, str], package: str = "somebodys"
) -> AbstractContextManager[None]:
    """A package in ``folder`` as pip would install it: it offers ``name → module:attribute``."""
    found: AbstractContextManager[None] = _installed(folder, registry, offers, package)
    return found


@contextmanager
def _registered(registry: Registry[Any], values: Mapping[str, object]) -> Any:
    with ExitStack() as stack:
        for name, value in values.items():
            registry.register(name, value)
            stack.callback(registry.unregister, name)
        yield


def registered(registry: Registry[Any], **values: object) -> AbstractContextManager[None]:
    """Values that this process registers."""
    found: AbstractContextManager[None] = _registered(registry, values)
    return found
