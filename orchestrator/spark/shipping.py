"""Packs Rove itself into one zip file from which an executor's Python imports it.

The zip has sources and, so that nothing is compiled for each run, what this Python compiled them to.
Executors need no Rove of their own; if they have one, this one goes first.
"""

import importlib.util
import marshal
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("node_agent", "orchestrator")
DISTRIBUTION = "rove-testbed"
ARCHIVE = "rove.zip"
_BY_HASH_UNCHECKED = 0b01
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def code_archive(folder: Path) -> Path:
    """Writes the zip file into ``folder``; returns its path."""
    target = folder / ARCHIVE
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for package in PACKAGES:
            _add_package(archive, package)
        _add_metadata(archive)
    return target


def _add_package(archive: zipfile.ZipFile, package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations)))
    for file in sorted(root.rglob("*")):
        if not file.is_file() or "__pycache__" in file.parts:
            continue
        name = f"{package}/{file.relative_to(root).as_posix()}"
        source = file.read_bytes()
        _add(archive, name, source)
        if file.suffix == ".py":
            _add(archive, f"{name}c", _compiled(source, name))


def _compiled(source: bytes, name: str) -> bytes:
    """Returns what another Python of this version imports without a look at the source's time (PEP 552)."""
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + _BY_HASH_UNCHECKED.to_bytes(4, "little")
    return head + importlib.util.source_hash(source) + marshal.dumps(code)


def _add_metadata(archive: zipfile.ZipFile) -> None:
    """Adds the version, as importlib.metadata looks for it."""
    try:
        found = version(DISTRIBUTION)
    except PackageNotFoundError:
        return
    folder = f"{DISTRIBUTION.replace('-', '_')}-{found}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {found}\n"
    _add(archive, f"{folder}/METADATA", metadata.encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, zipfile.ZIP_DEFLATED, 1)
