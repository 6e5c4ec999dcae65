"""Intent before deed, and a lock that dies with its holder."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from orchestrator.runs import journal as journals
from orchestrator.runs.journal import TORN_DOWN, Journal
from orchestrator.runs.processes import this_process


def test_entries_are_on_disk_in_order_as_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.create(path) as journal:
        first = journal.intend("process", what="simulator")
        assert [entry["entry"] for entry in journals.read(path)] == ["opened", "intent"]
        journal.done(first, pid=17)
        assert journal.intend("directory", path="tmp") == first + 1
    entries = journals.read(path)
    assert [entry["entry"] for entry in entries] == ["opened", "intent", "done", "intent", "closed"]
    assert (entries[1]["id"], entries[1]["what"], entries[2]["pid"]) == (first, "simulator", 17)
    assert journals.is_closed(entries)
    assert journals.owner(entries) == this_process()


def test_closing_twice_writes_one_end(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "journal.jsonl")
    journal.close()
    journal.close()
    assert [entry["entry"] for entry in journals.read(tmp_path / "journal.jsonl")] == ["opened", "closed"]


def test_the_lock_says_alive_until_closed(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert not journals.is_locked(path)
    journal = Journal.create(path)
    assert journals.is_locked(path)
    assert Journal.take_over(path, timeout=0) is None
    journal.close()
    assert not journals.is_locked(path)


def test_a_killed_holder_leaves_no_lock_though_its_child_lives_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    program = (
        "import subprocess, sys, pathlib, signal\n"
        "from orchestrator.runs.journal import Journal\n"
        "journal = Journal.create(pathlib.Path(sys.argv[1]))\n"
        "child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        assert journals.is_locked(path)
        holder.kill()
        holder.wait(10)
        assert not journals.is_locked(path)
        assert not journals.is_closed(journals.read(path))
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_taking_over_after_a_torn_line_keeps_every_whole_entry(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal.create(path)
    number = journal.intend("process", what="simulator")
    journal.close()
    whole = path.read_bytes().splitlines(keepends=True)[:2]
    path.write_bytes(b"".join(whole) + b'{"t": "2026", "entry": "do')
    again = Journal.take_over(path, timeout=0)
    assert again is not None
    assert again.intend("cleanup") == number + 1
    again.close(TORN_DOWN, left=[])
    entries = journals.read(path)
    assert [entry["entry"] for entry in entries] == ["opened", "intent", "intent", "torn_down"]
    assert journals.is_closed(entries)
    assert json.loads(path.read_bytes().splitlines()[-1])["left"] == []


def test_a_missing_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert journals.read(tmp_path / "journal.jsonl") == []
    assert not journals.is_closed([])
    assert journals.owner([]) is None


def test_who_looks_whether_a_run_is_alive_does_not_fail_its_start(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    program = (
        "import pathlib, sys\n"
        "from orchestrator.runs.journal import is_locked\n"
        "print('looks', flush=True)\n"
        "while True: is_locked(pathlib.Path(sys.argv[1]))\n"
    )
    looking = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    try:
        assert looking.stdout is not None and looking.stdout.readline() == b"looks\n"
        for _ in range(100):
            Journal.create(path).close()
            path.unlink()
        assert looking.poll() is None
    finally:
        looking.kill()
        looking.communicate()


def test_a_new_journal_waits_for_who_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    looked: list[bool] = []

    def look(file: BinaryIO, shared: bool = False) -> bool:
        with journals.unlocked_path(path).open("rb") as other:
            assert bool(looked) or real(other, True)
            looked.append(real(file, shared))
        return looked[-1]

    real = journals.try_lock
    monkeypatch.setattr(journals, "try_lock", look)
    Journal.create(path).close()
    assert looked == [False, True]


def test_a_new_journal_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    monkeypatch.setattr(journals, "LOCK_S", 0.05)
    tried: list[BinaryIO] = []

    def taken(file: BinaryIO) -> bool:
        tried.append(file)
        return False

    monkeypatch.setattr(journals, "try_lock", taken)
    with pytest.raises(BlockingIOError, match="another process holds the journal"):
        Journal.create(path)
    assert len(tried) > 1 and list(tmp_path.iterdir()) == []
