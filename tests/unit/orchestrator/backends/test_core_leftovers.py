"""What belongs to a session of CORE, by its looks alone."""

import json
from pathlib import Path

import pytest

from orchestrator.backends.core.leftovers import interfaces_of, is_program_of, short_id
from orchestrator.backends.core.marks import Mark, new_mark
from orchestrator.backends.core.session_leftovers import sessions_left
from orchestrator.runs import run_directory
from orchestrator.runs.journal import Journal
from tests.unit.rove_process import rove

DIRECTORY = "/tmp/pycore.1"


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        (["vnoded", "-v", "-c", "/tmp/pycore.1/n1", "-l", "/tmp/pycore.1/n1.log"], True),
        (["/opt/core/bin/vnoded", "-c", "/tmp/pycore.1/n1"], True),
        (["emane", "-d", "-f", "/tmp/pycore.1/n1.conf/eth0-emane.log"], True),
        (["vnoded", "-c", "/tmp/pycore.12/n1"], False),
        (["vnoded", "-c", "/tmp/pycore.2/n1"], False),
        (["tail", "-f", "/tmp/pycore.1/n1.log"], False),
        (["vcmd", "-c", "/tmp/pycore.1/n1", "--", "bash"], False),
        (["emane", "-d", "/etc/emane/platform.xml"], False),
        ([""], False),
        ([], False),
    ],
)
def test_a_process_is_of_a_session_by_its_program_and_its_directory(argv: list[str], ours: bool) -> None:
    assert is_program_of(argv, DIRECTORY) == ours


def test_interfaces_carry_the_number_of_the_session_and_are_newer_than_the_note() -> None:
    present = [
        (1, "lo"),
        (2, "eth0"),
        (3, "b.100.1"),
        (8, "b.100.1"),
        (9, "veth1.0.1"),
        (10, "b.100.2"),
        (11, "b.100.11"),
        (12, "veth1.0.1x"),
        (13, "docker0.1"),
        (14, "vethabc"),
        (15, "eth0.1"),
        (16, "ctrl0.1"),
    ]
    assert [name for _, name in interfaces_of(1, 5, present)] == ["b.100.1", "veth1.0.1", "ctrl0.1"]


@pytest.mark.parametrize(("session", "short"), [(1, "1"), (10, "a"), (255, "ff"), (256, "1"), (300, "2d")])
def test_numbers_are_shortened_as_core_does_it(session: int, short: str) -> None:
    assert short_id(session) == short


def test_runs_of_the_same_name_have_marks_of_their_own() -> None:
    one, other = new_mark("20260101-000000-abcd"), new_mark("20260101-000000-abcd")
    assert one.text != other.text
    assert one.ledger != other.ledger
    assert Mark("20260101-000000-abcd").text == "20260101-000000-abcd", "as versions before had it"


def test_status_names_a_session_that_is_up_or_left(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "field", "r1")
    with Journal.create(run.journal) as journal:
        number = journal.intend("core-session", host="me@emulator.lab", token="0123456789abcdef")
        assert sessions_left(run.path) == ["that had just been begun on me@emulator.lab"]
        journal.done(number, session=3, directory="/tmp/pycore.3")
        assert sessions_left(run.path) == ["3 on me@emulator.lab"]
        told = rove(tmp_path, "status", "r1").stdout
        assert "CORE session" in told and "3 on me@emulator.lab" in told and "rove down" not in told
        journal.abandon()
        told = rove(tmp_path, "status", "r1").stdout
        assert "CORE session 3 on me@emulator.lab: rove down r1 ends it" in told


def test_a_session_that_was_removed_is_not_named(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "field", "r1")
    with Journal.create(run.journal) as journal:
        number = journal.intend("core-session", host="me@emulator.lab", token="0123456789abcdef")
        journal.done(number, removed=True)
    assert sessions_left(run.path) == []
    assert json.loads(rove(tmp_path, "status", "r1", "--json").stdout)["elsewhere"] == []
