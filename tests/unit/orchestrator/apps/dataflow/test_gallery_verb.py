"""`rove gallery` on real pictures: who is in, who is out, and what makes it refuse without a change."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from node_agent.apps.dataflow.faces.gallery import load_gallery
from node_agent.apps.dataflow.faces.models import Model
from node_agent.apps.dataflow.faces.pixels import encode_png
from orchestrator.apps.dataflow.faces import installed
from orchestrator.cli.app import app
from orchestrator.errors import BadInput
from tests.unit.orl import frame, portrait


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def picture(path: Path, person: int, number: int = 0) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode_png(portrait(person, number)))
    return str(path)


def gallery(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["gallery", *arguments], env={"COLUMNS": "160"})


def refusal(*arguments: str) -> str:
    ended = gallery(*arguments)
    assert isinstance(ended.exception, BadInput)
    assert ended.exception.exit_code == 2
    return str(ended.exception)


def test_persons_come_and_go(folder: Path) -> None:
    first = gallery("add", "Ada L.", picture(folder / "a1.png", 1), picture(folder / "a2.png", 1, 1))
    assert first.exit_code == 0, first.exception
    assert "Ada L.: 2 pictures added" in first.stdout
    for number in range(3):
        picture(folder / "bob" / f"{number}.png", 2, number)
    (folder / "bob" / "notes.txt").write_text("not a picture")
    assert gallery("add", "Bob", "bob").exit_code == 0
    listed = json.loads(gallery("list", "--json").stdout)
    kept = load_gallery(folder / "galleries" / "people.gallery")
    assert (folder / "galleries").stat().st_mode & 0o777 == 0o700
    assert (folder / "galleries" / "people.gallery").stat().st_mode & 0o777 == 0o600
    assert listed == {
        "gallery": "galleries/people.gallery",
        "version": kept.version,
        "persons": {"Ada L.": 2, "Bob": 3},
    }
    assert kept.version in gallery("list").stdout
    removed = json.loads(gallery("remove", "Ada L.", "--json").stdout)
    assert removed["persons"] == {"Bob": 3}
    assert removed["version"] != listed["version"]
    assert [path.name for path in (folder / "galleries").iterdir()] == ["people.gallery"]


def test_a_picture_twice_is_a_picture_once(folder: Path) -> None:
    one = picture(folder / "a.png", 1)
    before = json.loads(gallery("add", "Ada", one, "--gallery", "g", "--json").stdout)
    assert json.loads(gallery("add", "Ada", one, "--gallery", "g", "--json").stdout) == before


def test_a_picture_without_one_face_changes_nothing(folder: Path) -> None:
    good = picture(folder / "a.png", 1)
    (folder / "wall.png").write_bytes(encode_png(frame()))
    (folder / "two.png").write_bytes(encode_png(frame(1, 2)))
    (folder / "torn.png").write_bytes(encode_png(portrait(1))[:200])
    gallery("add", "Ada", good)
    before = (folder / "galleries" / "people.gallery").read_bytes()
    assert refusal("add", "Bob", picture(folder / "b.png", 2), "wall.png").startswith("wall.png: no faces")
    assert refusal("add", "Bob", "two.png").startswith("two.png: 2 faces found")
    assert refusal("add", "Bob", "torn.png").startswith("torn.png: ")
    assert refusal("add", "Bob", "absent.png") == "absent.png: no such file"
    (folder / "empty").mkdir()
    assert refusal("add", "Bob", "empty").startswith("empty: there is no picture in this folder")
    assert "cannot be a person's name" in refusal("add", " ", good)
    assert refusal("remove", "Bob") == "nobody in the gallery is called 'Bob'"
    assert (folder / "galleries" / "people.gallery").read_bytes() == before


def test_a_file_that_is_no_gallery_is_left_alone(folder: Path) -> None:
    (folder / "notes").write_text("not a gallery")
    assert "not a gallery" in refusal("add", "Ada", picture(folder / "a.png", 1), "--gallery", "notes")
    assert (folder / "notes").read_text() == "not a gallery"
    assert "rove gallery add makes one" in refusal("list")


def test_without_the_extra_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Model("detector", "no_such_package", "weights.onnx", "no-such-package==1", "")
    monkeypatch.setattr(installed, "YUNET", absent)
    told = refusal("add", "Ada", picture(folder / "a.png", 1))
    assert told == "a gallery needs what is not installed here: no-such-package==1: " + installed.EXTRA
    assert not (folder / "galleries").exists()


def test_names_are_listed_as_they_are(folder: Path) -> None:
    assert gallery("add", "[red]Ada[/] ../x", picture(folder / "a1.png", 1)).exit_code == 0
    assert "[red]Ada[/] ../x" in gallery("list").stdout


def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    (folder / "file").write_text("not a folder")
    assert refusal("add", "Ada", picture(folder / "a1.png", 1), "--gallery", "file/a.gallery") == (
        "cannot make the gallery's folder file: File exists"
    )
