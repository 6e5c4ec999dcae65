"""Nodes of several kinds as facts, and wheels to choose from, for tests of deployment."""

import zipfile
from pathlib import Path

from orchestrator.deployment.facts import NodeFacts

PI = NodeFacts("pi", "/usr/bin/python3", (3, 11, 2), "aarch64", "linux", "glibc", (2, 36), "/home/pi")


def wheel(folder: Path, name: str, version: str, tag: str, files: dict[str, bytes] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    members = files if files is not None else {f"{name}/__init__.py": b"", f"{name}/fast.c": b"int x;"}
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")
        archive.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return path
