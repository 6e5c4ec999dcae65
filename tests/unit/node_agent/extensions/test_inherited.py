"""What a process registers is there in the processes that it starts."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node_agent.extensions import ExtensionError, Registry
from node_agent.extensions.inherited import VARIABLE


def _called(name: str, value: object) -> Callable[[], int]:
    if not callable(value):
        raise ExtensionError(f"{name} cannot be called")
    return value


NUMBERS: Registry[Callable[[], int]] = Registry("number", "rove.test_numbers", _called, {})


def seven() -> int:
    return 7


class Adder:
    def __call__(self) -> int:
        return 8


eight = Adder()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    for name in ("mine", "other"):
        if name in NUMBERS:
            NUMBERS.unregister(name)


def in_a_child(name: str) -> str:
    code = f"from {__name__} import NUMBERS; print(NUMBERS[{name!r}]())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[4]
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(("value", "found"), [(seven, "7\n"), (eight, "8\n")])
def test_a_child_finds_what_its_parent_registered(value: object, found: str) -> None:
    NUMBERS.register("mine", value)
    assert in_a_child("mine") == found


def test_what_was_taken_back_is_not_handed_on() -> None:
    NUMBERS.register("mine", seven)
    NUMBERS.register("other", seven)
    NUMBERS.unregister("mine")
    assert json.loads(os.environ[VARIABLE]) == {"rove.test_numbers": {"other": f"{__file__}:seven"}}
    assert "there is no number 'mine'" in in_a_child("mine")


def test_a_local_value_stays_in_its_process() -> None:
    NUMBERS.register("mine", lambda: 9)
    assert NUMBERS["mine"]() == 9
    assert "there is no number 'mine'" in in_a_child("mine")


def test_names_are_taken_once() -> None:
    NUMBERS.register("mine", seven)
    with pytest.raises(ExtensionError, match="there is a number 'mine' already"):
        NUMBERS.register("mine", eight)


def test_a_variable_of_somebody_else_is_no_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nonsense")
    assert "mine" not in NUMBERS
