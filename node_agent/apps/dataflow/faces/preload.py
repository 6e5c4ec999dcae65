"""Loads models and galleries of a query before agents are forked, which then share them."""

from functools import cache
from pathlib import Path

import msgspec

from node_agent.apps.dataflow.faces.detection import shared_detector
from node_agent.apps.dataflow.faces.embedding import shared_embedder
from node_agent.apps.dataflow.faces.gallery import BadGallery, Gallery, load_gallery
from node_agent.apps.dataflow.faces.params import DetectParams, RecogniseParams
from node_agent.apps.dataflow.model.query import Query


def preload(query_file: str) -> None:
    """Loads for the query in a JSON file. Raises ModelMissing, BadGallery."""
    query = msgspec.json.decode(Path(query_file).read_bytes(), type=Query)
    for operator in query.operators:
        if operator.kind == "detect_faces":
            shared_detector(msgspec.convert(operator.params, DetectParams).detector)
        elif operator.kind == "recognise_faces":
            params = msgspec.convert(operator.params, RecogniseParams)
            if params.method == "embedding":
                shared_embedder()
            if params.gallery:
                gallery_of(Path(params.gallery), params.version)


def gallery_of(path: Path, version: str) -> Gallery:
    """Returns the gallery in the file, if it has that version (empty: any). Raises BadGallery."""
    return _of_version(path, version) if version else load_gallery(path)


@cache
def _of_version(path: Path, version: str) -> Gallery:
    gallery = load_gallery(path)
    if gallery.version != version:
        raise BadGallery(
            f"gallery {path} has version {gallery.version}, but the run is planned with {version}: it is an"
            " old copy, or was changed since"
        )
    return gallery
