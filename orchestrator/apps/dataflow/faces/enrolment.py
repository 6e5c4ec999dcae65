"""Adds pictures of persons to a gallery's file: all of them, or the file stays as it is."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.apps.dataflow.faces.installed import require_models
from orchestrator.errors import BadInput
from orchestrator.spec.source_file import Unreadable, read_bytes

if TYPE_CHECKING:
    from node_agent.apps.dataflow.faces.gallery import Gallery

PICTURES = (".jpg", ".jpeg", ".png", ".pgm", ".ppm", ".bmp", ".webp")
MAX_PICTURE_BYTES = 50 << 20


def add_pictures(file: Path, person: str, images: Sequence[Path]) -> tuple["Gallery", int]:
    """Returns the new gallery, and how many pictures were added. Raises BadInput."""
    require_models("a gallery")
    # Import OpenCV and NumPy only once it is known that they are installed.
    from node_agent.apps.dataflow.faces.enrolment import enrol
    from node_agent.apps.dataflow.faces.gallery import BadGallery, Gallery, check_name, save_gallery
    from node_agent.apps.dataflow.faces.models import ModelMissing
    from node_agent.apps.dataflow.faces.pixels import BadImage

    gallery = open_gallery(file) if file.exists() else Gallery()
    samples = []
    try:
        check_name(person)
        for path in _pictures(images):
            try:
                samples.append(enrol(person, _content(path)))
            except BadImage as error:
                raise BadInput(f"{path}: {error}") from error
        changed = gallery.add(samples)
        _make_folder(file.parent)
        save_gallery(changed, file)
    except (BadGallery, ModelMissing) as error:
        raise BadInput(str(error)) from error
    return changed, len(changed.samples) - len(gallery.samples)


def open_gallery(file: Path) -> "Gallery":
    """Opens a gallery. Raises BadInput."""
    from node_agent.apps.dataflow.faces.gallery import BadGallery, load_gallery

    if not file.exists():
        raise BadInput(f"there is no gallery {file}: rove gallery add makes one")
    try:
        return load_gallery(file)
    except BadGallery as error:
        raise BadInput(str(error)) from error


def remove_person(file: Path, person: str) -> "Gallery":
    """Removes a person and returns the new gallery. Raises BadInput."""
    from node_agent.apps.dataflow.faces.gallery import BadGallery, save_gallery

    gallery = open_gallery(file)
    try:
        changed = gallery.remove(person)
        save_gallery(changed, file)
    except BadGallery as error:
        raise BadInput(str(error)) from error
    return changed


def _make_folder(folder: Path) -> None:
    """Makes a folder that only the user can read."""
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the gallery's folder {folder}: {error.strerror}") from error


def _pictures(images: Sequence[Path]) -> Iterator[Path]:
    """Returns the named files, and for folders all files in them, sorted by name."""
    for path in images:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(each for each in path.iterdir() if each.suffix.lower() in PICTURES)
        if not inside:
            raise BadInput(
                f"{path}: there is no picture in this folder (files ending in {', '.join(PICTURES)})"
            )
        yield from inside


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, MAX_PICTURE_BYTES)
    except Unreadable as error:
        raise BadInput(f"{path}: {error.message}") from error
