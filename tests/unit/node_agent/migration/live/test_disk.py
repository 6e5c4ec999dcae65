"""Journals and immutable state on disk: whole or refused."""

from pathlib import Path

import pytest

from node_agent.migration.live.coordinator import CoordinatorJournal, Phase
from node_agent.migration.live.disk import MOST_JOURNAL, Files
from node_agent.migration.live.journal import Journal, Role
from node_agent.migration.live.values import Order, Savepoint, card_of
from node_agent.model.checked import Refused

pytestmark = pytest.mark.unit

CARD = card_of(b"state")
ORDER = Order(1, "h0", "h1", CARD, ("s",), ("d",))
JOURNAL = Journal(Role.OWNER, 2, Savepoint((("s", 3),), 3, b"n"), ORDER, True, CARD, ("s",), ("d",))


def files(directory: Path, most_state: int = 100) -> Files[Journal]:
    return Files(directory, "recognise", Journal, most_state)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    shelf = files(tmp_path)
    assert shelf.journal() is None and shelf.state() is None
    shelf.keep(Journal())
    shelf.keep(JOURNAL)
    shelf.store(b"state")
    assert files(tmp_path).journal() == JOURNAL and files(tmp_path).state() == b"state"
    shelf.forget_state()
    shelf.forget_state()
    assert shelf.state() is None and shelf.journal() == JOURNAL
    coordinator = CoordinatorJournal("h0", Phase.ORDERED, ORDER)
    other = Files(tmp_path, "coordinator", CoordinatorJournal, 0)
    other.keep(coordinator)
    assert other.journal() == coordinator
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coordinator.journal", "recognise.journal"]


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 40])
def test_torn_files_are_refused(tmp_path: Path, cut: int) -> None:
    shelf = files(tmp_path)
    shelf.keep(JOURNAL)
    shelf.store(b"immutable state")
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:cut])
    for read in (shelf.journal, shelf.state):
        with pytest.raises(Refused):
            read()


def test_files_that_are_too_large_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    shelf = files(tmp_path, most_state=4)
    shelf.store(b"state")
    with pytest.raises(Refused):
        shelf.state()
    Files(tmp_path, "recognise", dict, 0).keep({"role": "emperor"})
    with pytest.raises(Refused):
        shelf.journal()
    with pytest.raises(OSError, match="larger"):
        Files(tmp_path, "recognise", bytes, 0).keep(bytes(MOST_JOURNAL))


@pytest.mark.parametrize("name", ["", "..", "../up", "a/b", ".hidden"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no name of a file"):
        Files(tmp_path, name, Journal, 0)


def test_what_could_not_be_written_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    shelf = files(tmp_path)
    shelf.keep(JOURNAL)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        shelf.store(b"state")
    with pytest.raises(OSError, match="No space"):
        shelf.keep(Journal())
    assert [path.name for path in tmp_path.iterdir()] == ["recognise.journal"]
    assert shelf.journal() == JOURNAL and shelf.state() is None
