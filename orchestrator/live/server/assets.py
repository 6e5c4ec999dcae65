"""The files of the page, read once: a request names an entry of this table, never a file."""

import gzip
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

INDEX = "index.html"
KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
}
PLAIN = "text/plain; charset=utf-8"
LICENCES = ("LICENSE", "LICENCE", "NOTICE")
_MISSING = b"<!doctype html><meta charset=utf-8><title>Rove</title><p>This installation has no page."


class Asset(NamedTuple):
    data: bytes
    compressed: bytes
    kind: str


def page_files() -> dict[tuple[str, ...], Asset]:
    """Returns the files by the parts of their path. The index is at the top: ``()``."""
    found = {
        tuple(parts): _asset(entry, kind)
        for parts, entry, kind in _walk(files("orchestrator.live") / "page", ())
    }
    index = found.get((INDEX,)) or Asset(_MISSING, gzip.compress(_MISSING, mtime=0), KINDS["html"])
    return {**found, (): index}


def _walk(folder: Traversable, above: tuple[str, ...]) -> list[tuple[tuple[str, ...], Traversable, str]]:
    if not folder.is_dir():
        return []
    found: list[tuple[tuple[str, ...], Traversable, str]] = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        parts = (*above, entry.name)
        if entry.is_dir():
            found += _walk(entry, parts)
        elif kind := _kind(entry.name):
            found.append((parts, entry, kind))
    return found


def _kind(name: str) -> str | None:
    return PLAIN if name in LICENCES else KINDS.get(name.rpartition(".")[2])


def _asset(entry: Traversable, kind: str) -> Asset:
    data = entry.read_bytes()
    return Asset(data, gzip.compress(data, mtime=0), kind)
