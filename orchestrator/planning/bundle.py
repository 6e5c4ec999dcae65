"""Packs an experiment into files that need nothing outside their directory: spec.yaml and what it names."""

from typing import Any

from node_agent.extensions.files import is_reference, split_reference
from orchestrator.planning.application import application
from orchestrator.spec.application import APPS
from orchestrator.spec.base import Section
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.file_reference import FileReference
from orchestrator.spec.registered import Registered, RegisteredName

SPEC = "spec.yaml"


def bundle(experiment: Experiment) -> dict[str, bytes]:
    """Returns contents by path within the directory; spec.yaml comes last and loads to the same
    experiment."""
    document = experiment.resolved()
    files: dict[str, bytes] = {}
    _collect(experiment, "", document, files)
    for name, entry in experiment.entries().items():
        section = document[APPS][name] if entry.prefix else document
        _collect(entry.section, "", section, files, within="".join(f"{part}/" for part in entry.prefix))
        files |= application(entry.kind).bundled(entry, section)
    for path, values in document["sweep"].items():
        _take_named(values, f"sweep.{path}", files)
    return {**files, SPEC: to_yaml(document).encode()}


def _collect(
    section: Section, folder: str, document: dict[str, Any], files: dict[str, bytes], within: str = ""
) -> None:
    """Puts the files that a section and its parts name into ``files``, and renames them in ``document``.

    A file goes into a folder named after its section, in the folder ``within``.
    """
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if isinstance(value, FileReference):
            named = value.path.name
            files |= {f"{within}{folder}/{name}": content for name, content in value.contents().items()}
            document[key] = value.written(f"{within}{folder}/{named}")
        elif isinstance(value, Section):
            for note in field.metadata:
                if isinstance(note, Registered):
                    _take_code(getattr(value, note.key), within + key, document[key], note.key, files)
            _collect(value, key, document[key], files, within)
        elif any(isinstance(note, RegisteredName) for note in field.metadata):
            _take_code(value, within + (folder or key), document, key, files)


def _take_named(values: Any, folder: str, files: dict[str, bytes]) -> None:
    """Packs the files of users' extensions that values of a sweep name, at whatever depth.

    Folders have numbers: the names of choices may be any text, also one that leads out of the directory.
    """
    pairs = list(values.items() if isinstance(values, dict) else enumerate(values))
    for number, (key, value) in enumerate(pairs):
        if isinstance(value, str):
            _take_code(value, f"{folder}.{number}", values, key, files)
        elif isinstance(value, dict | list):
            _take_named(value, f"{folder}.{number}", files)


def _take_code(name: str, folder: str, document: Any, key: str | int, files: dict[str, bytes]) -> None:
    """Packs the file of a user's extension, ``my_model.py:Model``."""
    if is_reference(name):
        path, attribute = split_reference(name)
        files[f"{folder}/{path.name}"] = path.read_bytes()
        document[key] = f"{folder}/{path.name}:{attribute}"
