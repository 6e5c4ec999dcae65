"""Names from other machines become paths below one directory, or are refused."""

from pathlib import Path

import pytest

from orchestrator.foreign_names import UnsafeName, path_inside


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "//etc/passwd",
        "a//b",
        "../a",
        "a/../../b",
        "a/./b",
        "a/",
        "a\nb",
        "a\x1b[2Jb",
        "a\x00b",
        "a\\b",
        "a" * 300,
        "/".join("a" * 17),
        "\u202egnp.exe",
        "\udcff",
    ],
)
def test_unsafe_names_are_refused_in_one_printable_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeName) as refused:
        path_inside(tmp_path, name)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["segments/b0001-s000000.jsonl", "frames/Ada L.jpg", "agent.log", "…/é"])
def test_plain_names_stay_below_the_directory(tmp_path: Path, name: str) -> None:
    assert path_inside(tmp_path, name) == tmp_path / name


def test_symbolic_links_lead_nowhere_else(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "way").symlink_to(tmp_path)
    (inside / "file").symlink_to(tmp_path / "target")
    for name in ("way/file", "file"):
        with pytest.raises(UnsafeName):
            path_inside(inside, name)
