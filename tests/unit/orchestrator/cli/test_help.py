"""Help that can be read on a terminal of 80 columns."""

import re

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import OF_APPLICATIONS, VERBS, app
from orchestrator.cli.help import help_of

NAMES = [
    (),
    *[(verb.__name__,) for verbs in VERBS.values() for verb in verbs],
    ("gallery",),
    ("gallery", "add"),
]
NARROW = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "TERM": "dumb"}


def shown(*words: str) -> str:
    named = [("set" if word == "set_" else "exec" if word == "execute" else word) for word in words]
    answer = CliRunner().invoke(app, [*named, "--help"], env=NARROW, prog_name="rove")
    assert answer.exit_code == 0
    return answer.stdout


@pytest.mark.parametrize("words", NAMES, ids=" ".join)
def test_no_line_is_longer_than_the_terminal(words: tuple[str, ...]) -> None:
    text = shown(*words)
    assert max(map(len, text.splitlines())) <= 80
    assert "[bold]" not in text and "[/]" not in text


def test_verbs_are_in_groups() -> None:
    lines = shown().splitlines()
    headings = [line.removesuffix(":") for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert headings == ["Options", *VERBS, OF_APPLICATIONS]
    assert "  validate  Check experiment and topology files; nothing is created." in lines
    words = " ".join(shown().split())
    for verb in (verb for verbs in VERBS.values() for verb in verbs):
        first = (verb.__doc__ or "").partition("\n\n")[0]
        assert " ".join(first.split()) in words
    assert lines[-1] == "  Start here: rove run experiments/quickstart.yaml"


def test_an_option_is_beside_its_help() -> None:
    text = shown("run")
    assert "  --run-id <str>            Instead of one made from date and time.\n" in text
    assert "\n    rove run experiments/quickstart.yaml --ui\n" in text


def test_paragraphs_are_wrapped_and_examples_are_not() -> None:
    def verb() -> None:
        """Does
        it.

        For [bold]all[/].

        [bold]Examples[/]

          rove verb a

          rove verb b    as well
        """

    assert help_of(verb) == (
        "Does\nit.\n\nFor all.\n\nExamples\n\n\b\n  rove verb a\n  rove verb b    as well"
    )
