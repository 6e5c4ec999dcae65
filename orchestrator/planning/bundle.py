"""Packs an experiment into files that need nothing outside their directory: spec.yaml and what it names."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from node_agent.extensions.files import is_reference, split_reference
from orchestrator.mobility.recorded import TraceFile
from orchestrator.planning.application import application
from orchestrator.spec.application import APPS
from orchestrator.spec.base import Section
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.file_reference import FileReference
from orchestrator.spec.registered import Registered, RegisteredName
from orchestrator.spec.source_file import Unreadable
from orchestrator.spec.sweep import FILE_KEYS

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
        _take_swept(values, f"sweep.{path}", (), files)
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


def _take_swept(values: Any, folder: str, file_keys: Collection[str | int], files: dict[str, bytes]) -> None:
    """Packs the files that values of a sweep name, at whatever depth: users' extensions, and with
    ``file_keys`` data.

    Folders have numbers: the names of choices may be any text, also one that leads out of the directory.
    """
    pairs = list(values.items() if isinstance(values, dict) else enumerate(values))
    for number, (key, value) in enumerate(pairs):
        here = f"{folder}.{number}"
        if isinstance(value, dict | list):
            _take_swept(value, here, FILE_KEYS, files)
        elif isinstance(value, str):
            take = _take_data if key in file_keys else _take_code
            take(value, here, values, key, files)


def _take_data(name: str, folder: str, document: Any, key: str | int, files: dict[str, bytes]) -> None:
    """Packs a file of movements, losses or packets. What is no such file was no name of one."""
    file = TraceFile(Path(name), "")  # takes along what belongs to a trace
    with suppress(Unreadable):
        files |= {f"{folder}/{each}": content for each, content in file.contents().items()}
        document[key] = f"{folder}/{file.path.name}"


def _take_code(name: str, folder: str, document: Any, key: str | int, files: dict[str, bytes]) -> None:
    """Packs the file of a user's extension, ``my_model.py:Model``."""
    if is_reference(name):
        path, attribute = split_reference(name)
        files[f"{folder}/{path.name}"] = path.read_bytes()
        document[key] = f"{folder}/{path.name}:{attribute}"
