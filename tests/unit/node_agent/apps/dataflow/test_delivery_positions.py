"""Sets of positions against sets of integers, and the spill file against a dictionary."""

import random
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.dataflow.delivery.positions import Positions, Range
from node_agent.apps.dataflow.delivery.spill import Batch, SpillFile, SpillFull

ranges = st.tuples(st.integers(1, 40), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))
changes = st.lists(st.tuples(st.booleans(), ranges), max_size=30)


def numbers(parts: list[Range]) -> set[int]:
    return {number for first, last in parts for number in range(first, last + 1)}


@given(changes, ranges)
def test_positions_are_a_set(done: list[tuple[bool, Range]], asked: Range) -> None:
    positions, model = Positions(), set[int]()
    for adds, (first, last) in done:
        if adds:
            positions.add(first, last)
            model |= numbers([(first, last)])
        else:
            positions.discard(first, last)
            model -= numbers([(first, last)])
    assert numbers(list(positions)) == model
    assert all(last + 1 < first for (_, last), (first, _) in zip(positions, [*positions][1:], strict=False))
    assert numbers(positions.missing(*asked)) == numbers([asked]) - model
    assert numbers(positions.common(*asked)) == numbers([asked]) & model
    assert positions.floor == next(n for n in range(60) if n + 1 not in model)
    for position in model:
        first, last = positions.around(position)
        assert first <= position <= last
        assert numbers([(first, last)]) <= model
        assert first - 1 not in model and last + 1 not in model


def test_a_spill_gives_back_what_it_took_and_uses_its_room_again(tmp_path: Path) -> None:
    draw = random.Random(1)
    spill = SpillFile(tmp_path, 1 << 20)
    kept: dict[int, Batch] = {}
    most = size = 0
    for _ in range(2000):
        if kept and (len(kept) > 20 or draw.random() < 0.4):
            handle = draw.choice(list(kept))
            assert spill.load(handle) == kept.pop(handle)
            spill.free(handle)
        else:
            batch: Batch = [(draw.randbytes(draw.randint(0, 300)),) for _ in range(draw.randint(1, 4))]
            kept[spill.store(batch)] = batch
        most = max(most, sum(len(p) for batch in kept.values() for payloads in batch for p in payloads))
        size = max(size, spill.size)
    assert size < 3 * most
    assert list(tmp_path.iterdir()) == [], "nobody has to clean up after it"
    for handle in kept:
        spill.free(handle)
    assert (spill.size, spill.refused) == (0, 0)
    spill.close()


def test_a_spill_has_no_more_than_it_may(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path, 1000)
    first = spill.store([(bytes(600),)])
    for _ in range(2):
        with pytest.raises(SpillFull):
            spill.store([(bytes(600),)])
    assert (spill.refused, spill.refusal) == (2, "it may have 1000 bytes")
    spill.free(first)
    assert spill.load(spill.store([(bytes(700),)])) == [(bytes(700),)]


@pytest.fixture
def small_files() -> Iterator[None]:
    """The system lets no file grow beyond 1000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_disk_without_room_is_no_more_than_a_spill_without_room(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path, 1 << 20)
    kept = spill.store([(bytes(600),)])
    with pytest.raises(SpillFull, match="File too large"):
        spill.store([(bytes(600),)])
    assert spill.refused == 1
    small = spill.store([(bytes(300),)])
    assert spill.load(kept) == [(bytes(600),)] and spill.load(small) == [(bytes(300),)]


def test_a_directory_that_is_gone_is_a_spill_without_room(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path / "gone", 1 << 20)
    with pytest.raises(SpillFull, match="No such file"):
        spill.store([(b"x",)])
    spill.close()
