"""An experiment as files that need nothing outside their directory: spec.yaml, and the files it names."""

from pathlib import Path
from typing import Any

from node_agent.extensions.files import is_reference, split_reference
from orchestrator.apps.dataflow.faces import galleries
from orchestrator.spec.base import Section
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.file_reference import FileReference
from orchestrator.spec.registered import Registered, RegisteredName

SPEC = "spec.yaml"


def bundle(experiment: Experiment) -> dict[str, bytes]:
    """Contents by path within the directory; spec.yaml comes last and loads to the same experiment."""
    document = experiment.resolved()
    files: dict[str, bytes] = {}
    _collect(experiment, "", document, files)
    for path, values in document["sweep"].items():
        for index, value in enumerate(values):
            if isinstance(value, str):
                _take_code(value, f"sweep.{path}.{index}", values, index, files)
    for params in _naming_galleries(document["query"]):
        content, name = _gallery(Path(params["gallery"]))
        files[name] = content
        params["gallery"] = name
    return {**files, SPEC: to_yaml(document).encode()}


def _collect(section: Section, folder: str, document: dict[str, Any], files: dict[str, bytes]) -> None:
    """Take the files that a section and its parts name into ``files``, and rename them in ``document``.

    A file goes to a folder that is called like the section that names it.
    """
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if isinstance(value, FileReference):
            named = value.path.name
            files |= {f"{folder}/{name}": content for name, content in value.contents().items()}
            document[key] = value.written(f"{folder}/{named}")
        elif isinstance(value, Section):
            for note in field.metadata:
                if isinstance(note, Registered):
                    _take_code(getattr(value, note.key), key, document[key], note.key, files)
            _collect(value, key, document[key], files)
        elif any(isinstance(note, RegisteredName) for note in field.metadata):
            _take_code(value, folder or key, document, key, files)


def _take_code(name: str, folder: str, document: Any, key: str | int, files: dict[str, bytes]) -> None:
    """A user's extension, ``my_model.py:Model``."""
    if is_reference(name):
        path, attribute = split_reference(name)
        files[f"{folder}/{path.name}"] = path.read_bytes()
        document[key] = f"{folder}/{path.name}:{attribute}"


def _naming_galleries(query: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a resolved query that name one."""
    parts = [query, *(query["operators"].values() if isinstance(query.get("operators"), dict) else ())]
    return [part for part in parts if part.get("gallery")]


def _gallery(path: Path) -> tuple[bytes, str]:
    # Imported here: who names no gallery need not wait for NumPy.
    from node_agent.apps.dataflow.faces.gallery import load_gallery

    gallery = load_gallery(path)
    return gallery.encode(), f"{galleries.FOLDER}/{galleries.file_name(gallery.version)}"
