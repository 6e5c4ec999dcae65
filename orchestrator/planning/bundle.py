"""An experiment as files that need nothing outside their directory: spec.yaml, and the files it names."""

from pathlib import Path
from typing import Any

from orchestrator.apps.dataflow.faces import galleries
from orchestrator.apps.dataflow.spec.python_query import PythonQuery
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.pathloss import LossTrace, Matrix
from orchestrator.spec.radio import Radio80211b
from orchestrator.spec.recorded import RecordedTrace

SPEC = "spec.yaml"
TRACES = "mobility"
LOSSES = "pathloss"
QUERIES = "query"


def bundle(experiment: Experiment) -> dict[str, bytes]:
    """Contents by path within the directory; spec.yaml comes last and loads to the same experiment."""
    document = experiment.resolved()
    files: dict[str, bytes] = {}
    mobility = experiment.topology.mobility
    if isinstance(mobility, RecordedTrace):
        files = {f"{TRACES}/{name}": content for name, content in mobility.file.contents().items()}
        document["topology"]["mobility"]["file"] = f"{TRACES}/{mobility.file.path.name}"
    radio = experiment.topology.radio
    losses = radio.pathloss if isinstance(radio, Radio80211b) else None
    if isinstance(losses, Matrix | LossTrace) and losses.file is not None:
        files |= {f"{LOSSES}/{name}": content for name, content in losses.file.contents().items()}
        document["topology"]["radio"]["pathloss"]["file"] = f"{LOSSES}/{losses.file.path.name}"
    if isinstance(experiment.query, PythonQuery):
        source = experiment.query.python
        files |= {f"{QUERIES}/{name}": content for name, content in source.contents().items()}
        document["query"]["python"] = f"{QUERIES}/{source.path.name}:{source.function}"
    for params in _naming_galleries(document["query"]):
        content, name = _gallery(Path(params["gallery"]))
        files[name] = content
        params["gallery"] = name
    return {**files, SPEC: to_yaml(document).encode()}


def _naming_galleries(query: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a resolved query that name one."""
    parts = [query, *(query["operators"].values() if isinstance(query.get("operators"), dict) else ())]
    return [part for part in parts if part.get("gallery")]


def _gallery(path: Path) -> tuple[bytes, str]:
    # Imported here: who names no gallery need not wait for NumPy.
    from node_agent.apps.dataflow.faces.gallery import load_gallery

    gallery = load_gallery(path)
    return gallery.encode(), f"{galleries.FOLDER}/{galleries.file_name(gallery.version)}"
