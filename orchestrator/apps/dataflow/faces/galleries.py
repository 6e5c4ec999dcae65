"""Gives every run its own copies of galleries, and records their versions in its plan.

A replica that finds another version in its file does not start.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import structs

from node_agent.apps.dataflow.faces.params import RecogniseParams
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec
from orchestrator.apps.dataflow.faces.installed import require_models
from orchestrator.errors import BadInput

if TYPE_CHECKING:
    from node_agent.apps.dataflow.faces.gallery import Gallery

RECOGNISE = "recognise_faces"
FOLDER = "galleries"
SUFFIX = ".gallery"


class Pinned(NamedTuple):
    """``persons``: the persons in each of the plan's galleries, by version."""

    plan: DeploymentPlan
    persons: dict[str, tuple[str, ...]]


def pinned(plan: DeploymentPlan, directory: Path) -> Pinned:
    """Returns the plan with the versions of its galleries, and with copies of them in the run's
    ``directory``.

    A query that names no gallery gets that of the synthetic scene's persons of interest, which is made once
    from pictures that the scene never shows. Raises BadInput.
    """
    persons: dict[str, tuple[str, ...]] = {}
    operators = []
    for operator in plan.query.operators:
        if operator.kind == RECOGNISE:
            path, version, names = _shipped(operator, plan.query.module, directory)
            operator = structs.replace(
                operator, params={**operator.params, "gallery": str(path), "version": version}
            )
            persons[version] = names
        operators.append(operator)
    return Pinned(
        structs.replace(plan, query=structs.replace(plan.query, operators=tuple(operators))), persons
    )


def _shipped(
    operator: OperatorSpec, module: str | None, directory: Path
) -> tuple[Path, str, tuple[str, ...]]:
    # Imported here: other queries do not need NumPy.
    from node_agent.apps.dataflow.faces.gallery import BadGallery, load_gallery, save_gallery

    params = msgspec.convert(operator.params, RecogniseParams)
    folder = directory / FOLDER
    try:
        if params.gallery:
            gallery = load_gallery(Path(module or "").parent / params.gallery)
            path = folder / file_name(gallery.version)
        else:
            path = folder / f"scene-{params.persons}-{params.enrolled}{SUFFIX}"
            gallery = load_gallery(path) if path.exists() else _of_scene(params)
        if params.version and params.version != gallery.version:
            raise BadInput(
                f"{operator.name} wants version {params.version} of its gallery, but the file has"
                f" {gallery.version}"
            )
        if not path.exists():
            folder.mkdir(0o700, exist_ok=True)  # biometric data
            save_gallery(gallery, path)
    except BadGallery as error:
        raise BadInput(f"{operator.name}: {error}") from error
    return path.resolve(), gallery.version, tuple(gallery.persons)


def file_name(version: str) -> str:
    return f"{version}{SUFFIX}"


def _of_scene(params: RecogniseParams) -> "Gallery":
    require_models("recognition of faces")
    from node_agent.apps.dataflow.faces.scene_gallery import scene_gallery

    return scene_gallery(params.persons, params.enrolled)
