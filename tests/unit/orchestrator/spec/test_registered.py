"""Fields that a registry decides on: names, users' files, errors and JSON Schema."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ValidationError

from node_agent.extensions import ExtensionError, Registry
from orchestrator.spec.base import Section
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.problems import Finding
from orchestrator.spec.registered import CODE_ALLOWED, Registered, RegisteredName
from orchestrator.spec.translate import findings_of


class Shape(Section):
    form: str
    size: int = 1


class Circle(Shape):
    form: Literal["circle"]


class Square(Shape):
    form: Literal["square"]
    turned: bool = False


def _checked(name: str, value: object) -> type[Shape]:
    if not (isinstance(value, type) and issubclass(value, Shape)):
        raise ExtensionError(f"{name} is not a shape")
    return value


SHAPES: Registry[type[Shape]] = Registry(
    "shape", "rove.test_shapes", _checked, {"circle": f"{__name__}:Circle", "square": f"{__name__}:Square"}
)


class Drawing(Section):
    shape: Annotated[Shape, Registered(SHAPES, "form", default="circle", word=True)]
    also: Annotated[str, RegisteredName(SHAPES, words=("none",))] = "none"


OWN = """
from tests.unit.orchestrator.spec.test_registered import Shape

class Star(Shape):
    points: int = 5

class Broken(Shape):
    def model_post_init(self, context):
        1 / 0

NUMBER = 3
"""


def drawn(folder: Path, **keys: Any) -> Drawing:
    return Drawing.model_validate(keys, context={FOLDER: folder})


def problems(folder: Path, **keys: Any) -> list[Finding]:
    with pytest.raises(ValidationError) as raised:
        drawn(folder, **keys)
    return findings_of(raised.value, Drawing, keys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path


def test_the_key_chooses_the_section(tmp_path: Path) -> None:
    assert drawn(tmp_path, shape={"form": "square", "turned": True}).shape == Square(
        form="square", turned=True
    )
    assert drawn(tmp_path, shape={"size": 3}).shape == Circle(form="circle", size=3)
    assert drawn(tmp_path, shape="square").shape == Square(form="square")


def test_a_section_is_dumped_whole(tmp_path: Path) -> None:
    drawing = drawn(tmp_path, shape={"form": "square"}, also="circle")
    document = {"shape": {"form": "square", "size": 1, "turned": False}, "also": "circle"}
    assert drawing.model_dump(mode="json") == document
    assert Drawing.model_validate(document) == drawing


@pytest.mark.parametrize(
    ("shape", "finding"),
    [
        (
            {"form": "squar"},
            Finding(
                ("shape", "form"),
                '"squar" is not known here; expected circle or square',
                'did you mean "square"?',
            ),
        ),
        (
            {"form": "square", "siz": 1},
            Finding(("shape", "siz"), "unknown key", 'did you mean "size"?'),
        ),
        ({"form": "square", "size": []}, Finding(("shape", "size"), "a list: expected a whole number")),
        ([], Finding(("shape",), "a list: expected a mapping (key: value)")),
        ("ring", Finding(("shape",), '"ring" is not known here; expected circle or square')),
    ],
)
def test_errors_name_path_and_choices(tmp_path: Path, shape: Any, finding: Finding) -> None:
    assert problems(tmp_path, shape=shape) == [finding]


def test_a_file_is_relative_to_the_one_that_names_it(folder: Path) -> None:
    drawing = drawn(folder, shape={"form": "mine.py:Star", "points": 7}, also="mine.py:Star")
    assert drawing.shape.model_dump() == {"form": f"{folder}/mine.py:Star", "size": 1, "points": 7}
    assert drawing.also == f"{folder}/mine.py:Star"
    again = Drawing.model_validate(drawing.model_dump(mode="json"))
    assert again == drawing


@pytest.mark.parametrize(
    ("form", "message", "hint"),
    [
        ("mime.py:Star", '"mime.py": no such file', 'did you mean "mine.py"?'),
        ("mine.py:Sun", "mine.py defines no Sun", ""),
        ("mine.py", "mine.py names no part of a Python file: write it like my_policy.py:decide", ""),
        ("mine.py:NUMBER", "mine.py:NUMBER is not a shape", ""),
        (
            "mine.py:Broken",
            'shape "mine.py:Broken": mine.py, line 9: ZeroDivisionError: division by zero',
            "",
        ),
    ],
)
def test_files_that_cannot_be_used(folder: Path, form: str, message: str, hint: str) -> None:
    assert problems(folder, shape={"form": form}) == [Finding(("shape", "form"), message, hint)]


def test_code_is_not_run_where_that_is_not_allowed(folder: Path) -> None:
    with pytest.raises(ValidationError, match="code, which is not run here"):
        Drawing.model_validate(
            {"shape": {"form": "mine.py:Star"}}, context={FOLDER: folder, CODE_ALLOWED: False}
        )


def test_schema_follows_from_the_registry() -> None:
    schema = Drawing.model_json_schema()
    names, circle, square, of_a_file = schema["properties"]["shape"]["anyOf"]
    assert names["anyOf"][0] == {"enum": ["circle", "square"]}
    assert [circle["title"], square["title"]] == ["Circle", "Square"]
    assert set(square["properties"]) == {"form", "size", "turned"}
    assert of_a_file["required"] == ["form"]
    assert schema["properties"]["also"]["anyOf"][0] == {"enum": ["circle", "square", "none"]}
