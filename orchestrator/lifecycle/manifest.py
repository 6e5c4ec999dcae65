"""What is needed to understand a run later and to repeat it: versions, host, seeds, plan, checksums."""

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

DISTRIBUTION = "rove-testbed"


def versions() -> dict[str, str | None]:
    return {
        "rove": _version(DISTRIBUTION),
        "python": platform.python_version(),
        "pyspark": _version("pyspark"),
        "platform": platform.platform(),
    }


def host_facts() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }


def checksums(directory: Path) -> dict[str, str]:
    """SHA-256 of every telemetry segment, ground-truth and trace file, by path within the run directory."""
    parts = ("nodes", "radio", "mobility")
    files = [path for part in parts for path in (directory / part).rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): _sha256(path) for path in sorted(files)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
