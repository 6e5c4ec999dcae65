"""The galleries that a dataflow's section names, for the run's own directory."""

from pathlib import Path
from typing import Any

from orchestrator.apps.dataflow.faces import galleries


def bundled_galleries(document: dict[str, Any]) -> dict[str, bytes]:
    """By path in the directory; ``document``, the resolved section, is changed to name them there."""
    files: dict[str, bytes] = {}
    for params in _naming_galleries(document["query"]):
        content, name = _gallery(Path(params["gallery"]))
        files[name] = content
        params["gallery"] = name
    return files


def _naming_galleries(query: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a resolved query that name one."""
    parts = [query, *(query["operators"].values() if isinstance(query.get("operators"), dict) else ())]
    return [part for part in parts if part.get("gallery")]


def _gallery(path: Path) -> tuple[bytes, str]:
    # Imported here: NumPy is needed only if a gallery is named.
    from node_agent.apps.dataflow.faces.gallery import load_gallery

    gallery = load_gallery(path)
    return gallery.encode(), f"{galleries.FOLDER}/{galleries.file_name(gallery.version)}"
