"""Every way to get a file wrong that we know of, and the exact words it is answered with.

``ROVE_BLESS=1 pytest tests/unit/orchestrator/spec/test_bad_files.py`` rewrites the expected texts; read
them before you commit.
"""

import os
import stat
from pathlib import Path

import pytest

from orchestrator.errors import BadInput
from orchestrator.planning.load import load_any, load_experiment, load_topology
from orchestrator.spec import yaml_source
from orchestrator.spec.problems import BadSpec

FOLDER = Path(__file__).parents[2] / "bad_files"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml") if path.is_file())
NOBODY = 65534
JARGON = ("Input should", "pydantic", "valid dictionary", "discriminator", "Extra inputs", "Field required")


def problem_text(path: Path) -> str:
    with pytest.raises(BadInput) as raised:
        load_any(path)
    return str(raised.value)


@pytest.mark.parametrize("name", FILES)
def test_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    text = problem_text(Path(name)) + "\n"
    golden = Path(name).with_suffix(".txt")
    if os.environ.get("ROVE_BLESS"):
        golden.write_text(text)
    assert text == golden.read_text()
    assert not any(word in text for word in JARGON)


def test_there_is_a_file_for_every_text() -> None:
    assert len(FILES) >= 45
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == [Path(name).stem for name in FILES]


def test_a_file_of_ten_megabytes_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"a: [[[[\n" * 1_250_000)
    assert problem_text(path) == (
        f"{path}: 1 problem\n  too large: 10.0 MB, at most 1 MB is read\n      is this the right file?"
    )


def test_a_file_of_too_many_values_is_refused_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_source, "MAX_VALUES", 100)
    path = tmp_path / "values.yaml"
    path.write_text("- a\n" * 1000)
    assert "line 100: more than 100 values" in problem_text(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x7fELF\x02\x01\x01\x00\xff\xfe", "not a text file: byte 8 is not UTF-8"),
        (b"name: a\x00b\n", "not a text file: it holds control characters"),
        ("name: demo\n".encode("utf-16"), "not a text file: byte 0 is not UTF-8"),
    ],
)
def test_binary(content: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(content)
    assert problem_text(path) == f"{path}: 1 problem\n  {expected}"


def test_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "quickstart.yaml").touch()
    text = problem_text(tmp_path / "quikstart.yaml")
    assert text.endswith(': 1 problem\n  no such file\n      did you mean "quickstart.yaml"?')


def test_not_a_file(tmp_path: Path) -> None:
    assert problem_text(tmp_path).endswith("this is a folder, not a file")
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    assert problem_text(pipe).endswith("not a regular file")
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    assert problem_text(loop).endswith("cannot be read: too many levels of symbolic links")
    assert problem_text(Path("null\0byte")).endswith("not a usable file name")


def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.touch()
    path.chmod(stat.S_IWUSR)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)  # root may read everything
    try:
        assert problem_text(path).endswith("no permission to read this file")
    finally:
        os.seteuid(user)


def test_problems_are_values_with_path_and_line() -> None:
    with pytest.raises(BadSpec) as raised:
        load_experiment(FOLDER / "unknown_nested_key.yaml")
    (problem,) = raised.value.problems
    assert (problem.path, problem.line, problem.message) == ("switching.treshold", 7, "unknown key")
    assert problem.hint == 'did you mean "threshold"?'


def test_a_long_list_is_cut_in_the_text_but_not_in_the_value(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text("".join(f"key{number}: 1\n" for number in range(80)))
    with pytest.raises(BadSpec) as raised:
        load_topology(path)
    assert len(raised.value.problems) == 84
    assert str(raised.value).endswith("… and 34 more (--json lists them all)")
