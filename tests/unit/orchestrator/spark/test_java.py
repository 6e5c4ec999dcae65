"""Which Java Spark is started with."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.errors import RoveError
from orchestrator.spark.java import find_java, java_home, parse_version

KNOWS_ALL = "exit 0"
LACKS_MODULE = 'case "$*" in *incubator*) echo "Module not found" >&2; exit 1;; esac'


def a_java(directory: Path, version: str, manner: str = KNOWS_ALL) -> Path:
    """A program that answers as ``java -version`` does, and otherwise prints its arguments."""
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\n{manner.replace('exit 0', ':')}\n"
        f'echo \'openjdk version "{version}"\' >&2\nfor a do echo "<$a>"; done\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "21-ea"', 21),
        ("bash: java: command not found", None),
    ],
)
def test_version_is_read_from_what_java_prints(printed: str, version: int | None) -> None:
    assert parse_version(printed) == version


def test_the_first_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    old, new = a_java(tmp_path / "old", "11.0.2"), a_java(tmp_path / "new", "21.0.1")
    found = find_java([tmp_path / "nowhere", old, new])
    assert (found.executable, found.version) == (new, 21)
    assert java_home(found) == tmp_path / "new"


def test_without_any_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RoveError, match=r"pip install 'rove-testbed\[java\]'"):
        find_java([a_java(tmp_path, "11.0.2")])


def test_one_without_the_module_gets_a_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = a_java(tmp_path / "it's here", "25.0.2", LACKS_MODULE)
    home = java_home(find_java([real]))
    wrapper = home / "bin" / "java"
    assert home.is_relative_to(tmp_path / "cache" / "rove")
    assert home.stat().st_mode & 0o077 == 0
    command = [str(wrapper), "-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", ""]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    assert printed.splitlines() == ["<-Xmx1g>", "<-Da=b c>", "<>"]
    # What somebody else put there is not run.
    content = wrapper.read_bytes()
    wrapper.write_text("#!/bin/sh\nexit 7\n")
    java_home(find_java([real]))
    assert wrapper.read_bytes() == content


def test_a_cache_that_is_a_link_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache" / "rove").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RoveError, match="is not a directory of yours"):
        java_home(find_java([a_java(tmp_path / "j", "25", LACKS_MODULE)]))
