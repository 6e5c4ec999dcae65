"""Sent to a node as text and run there by its own Python: prints the facts as one line of JSON."""

import importlib.util
import json
import os
import platform
import re
import struct
import subprocess
import sys
from pathlib import Path

_INSTALLED = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*?)-(?P<version>\d[^-]*)(-py3.*)?\.(dist|egg)-info"
)
_NARROW = {"aarch64": "armv7l", "arm64": "armv7l", "armv8l": "armv7l", "x86_64": "i686"}


def _packages() -> tuple[dict[str, str], dict[str, str]]:
    """Lists packages by directory names: reading their metadata takes a second on a small machine."""
    versions: dict[str, str] = {}
    sites: dict[str, str] = {}
    for site in sys.path:
        folder = Path(site)
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            match = _INSTALLED.fullmatch(entry.name)
            if match:
                name = re.sub(r"[-_.]+", "-", match["name"]).lower()
                if versions.setdefault(name, match["version"]) == match["version"]:
                    sites.setdefault(name, site)
    spec = importlib.util.find_spec("cv2")
    if spec is not None and spec.origin and not any(name.startswith("opencv") for name in versions):
        # System packages do not list it.
        asked = subprocess.run(
            [sys.executable, "-c", "import cv2; print(cv2.__version__)"], capture_output=True, text=True
        )
        if asked.returncode == 0:
            versions["opencv"] = asked.stdout.strip()
            origin = Path(spec.origin)
            package = origin.parent if origin.stem == "__init__" else origin
            sites["opencv"] = str(package.parent)
    return versions, sites


def _libc() -> tuple[str, tuple[int, int]]:
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        return name, tuple(map(int, version.split(".")[:2]))  # type: ignore[return-value]
    except (AttributeError, OSError, ValueError):
        pass
    for loader in sorted(Path("/lib").glob("ld-musl-*")):
        output = subprocess.run([str(loader)], capture_output=True, text=True).stderr
        match = re.search(r"Version (\d+)\.(\d+)", output)
        if match:
            return "musl", (int(match[1]), int(match[2]))
    return "", (0, 0)


def facts() -> dict[str, object]:
    android = hasattr(sys, "getandroidapilevel") or sys.platform == "android" or "com.termux" in sys.prefix
    machine = platform.machine()
    narrow = struct.calcsize("P") == 4
    home = str(Path.home())
    libc, libc_version = ("", (0, 0)) if android else _libc()
    packages, sites = _packages()
    return {
        "python": sys.executable,
        "version": sys.version_info[:3],
        "machine": _NARROW.get(machine, machine) if narrow else machine,
        "system": "android" if android else sys.platform,
        "libc": libc,
        "libc_version": libc_version,
        "home": home,
        "packages": packages,
        "sites": sites,
        "implementation": sys.implementation.name,
        "abiflags": sys.abiflags,
    }


if __name__ == "__main__":
    print(json.dumps(facts()))
