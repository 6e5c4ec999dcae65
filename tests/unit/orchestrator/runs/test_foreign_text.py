"""What other machines say is shown as text: no terminal obeys it, no markup is read in it."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.progress import Progress
from rich.table import Table

from orchestrator.cli.output import PlainConsole, json_text
from orchestrator.foreign_text import LONGEST_LINE, one_line, plain
from orchestrator.runs import run_directory
from orchestrator.runs.events import EventLog
from orchestrator.runs.journal import Journal
from orchestrator.ssh.errors import CommandFailed
from tests.unit.rove_process import rove

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp \x7f[red]x[/red]\r"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def test_control_characters_become_visible_and_all_else_stays() -> None:
    assert plain("a – é …\n\tb") == "a – é …\n\tb"
    assert plain("\x1b[31m\x07\x9b\u202e") == r"\x1b[31m\x07\x9b\u202e"
    assert one_line("two\nlines\t\x1b") == r"two\nlines\t\x1b"
    assert len(one_line("x" * 10_000)) == LONGEST_LINE + 1
    assert one_line("\ud800") == r"\ud800", "what cannot be encoded can be printed"


def test_a_hosts_words_in_an_error_are_one_line_of_text() -> None:
    error = CommandFailed("n1", f"cat: {EVIL}\nn2: collected")
    assert not _CONTROL.search(str(error)) and "\n" not in str(error)
    assert error.reason in str(error)


def printed(what: object, markup: bool = True) -> str:
    console = PlainConsole(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=200)
    console.print(what, markup=markup, highlight=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_whatever_is_printed_colours_are_ours_alone() -> None:
    assert printed("[red]ours[/]") == "\x1b[31mours\x1b[0m\n"
    table = Table(box=None)
    table.add_column("what")
    table.add_row(EVIL)
    for text in (printed(EVIL, markup=False), printed(table)):
        assert "\x1b]" not in text and "\x1b[2J" not in text and "\x9b" not in text and "\u202e" not in text
    assert "[red]x[/red]" in printed(EVIL, markup=False)


def test_progress_still_moves_the_cursor() -> None:
    console = PlainConsole(file=io.StringIO(), force_terminal=True, width=80)
    with Progress(console=console) as progress:
        progress.update(progress.add_task("work", total=1.0), completed=1.0)
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[?25l" in console.file.getvalue()


def test_json_is_the_same_value_without_control_characters() -> None:
    value = {"reason": EVIL, "é": ["\U000e0001", 1.5, None]}
    for text in (json_text(value), json_text(value, indent=2)):
        assert json.loads(text) == value
        assert not _CONTROL.search(text.replace("\n", "")) and "é" in text


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_no_verb_passes_a_nodes_words_to_the_terminal(tmp_path: Path, options: tuple[str, ...]) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    Journal.create(run.journal).close()
    failed = {"phase": "collect", "ok": [], "failed": {"n1": EVIL}, "unreachable": {}}
    EventLog(run.events).add("nodes", **failed)
    phase = {"phase": f"stop{EVIL}", "state": "finished", "outcome": "ok", "seconds": 1.0, "reason": EVIL}
    EventLog(run.events).add("phase", **phase)
    EventLog(run.events).add("verdict", verdict="failed", reasons=[EVIL])
    run.verdict.write_text(json.dumps({"verdict": f"failed{EVIL}", "reasons": [EVIL]}))
    for words in (("events", "r1"), ("status",), ("status", "r1"), ("collect", "r1", "--no-analyze")):
        done = rove(tmp_path, *words, *options)
        shown = (done.stdout + done.stderr).replace("\n", "")
        assert not _CONTROL.search(shown), (words, shown)
