"""The parts of live migration: chunks of state, buffers, and the next move of a plan."""

import pytest

from node_agent.migration.live.buffer import Buffer
from node_agent.migration.live.following import Move, next_move
from node_agent.migration.live.messages import Chunk, Fetch, Sent
from node_agent.migration.live.state import Assembler, serve
from node_agent.migration.live.values import Item, card_of
from node_agent.migration.plan import Expected, Plan, certain_plan, even_steps

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

DATA = b"0123456789" * 3


def assembler(data: bytes = DATA, window: int = 2) -> Assembler:
    return Assembler(1, card_of(data, 7), "h0", window)


def assemble(into: Assembler, data: bytes) -> None:
    card, effects = card_of(data, 7), into.ask("h0")
    while effects:
        answers = []
        for effect in effects:
            assert isinstance(effect, Sent)
            assert isinstance(effect.message, Fetch)
            answers += serve("h1", data, card, effect.message, 2)
        effects = []
        for answer in answers:
            assert isinstance(answer, Sent)
            assert isinstance(answer.message, Chunk)
            effects += into.take("h0", answer.message)


def test_chunks_make_the_state_again() -> None:
    into = assembler()
    assemble(into, DATA)
    assert into.data == DATA


def test_empty_state_needs_no_chunk() -> None:
    into = assembler(b"")
    assert into.ask("h0") == []
    assert into.data == b""


def test_other_state_is_wrong() -> None:
    into = assembler()
    assemble(into, bytes(len(DATA)))
    assert into.wrong
    assert into.data is None


@pytest.mark.parametrize("data", [b"", b"0123456", b"01234567"])
def test_a_chunk_has_its_length_or_is_wrong(data: bytes) -> None:
    into = assembler()
    into.ask("h0")
    into.take("h0", Chunk(1, 0, data))
    assert into.wrong == (len(data) != 7)


def test_chunks_of_others_and_out_of_turn_are_left_out() -> None:
    into = assembler()
    into.ask("h0")
    assert into.take("h2", Chunk(1, 0, DATA[:7])) == []
    assert into.take("h0", Chunk(1, 1, DATA[7:14])) == []
    assert into.following == 0


def test_no_more_chunks_are_served_than_may_be_under_way() -> None:
    card = card_of(DATA, 7)
    assert len(serve("h1", DATA, card, Fetch(1, 0, 10**9), 2)) == 2
    assert serve("h1", DATA, card, Fetch(1, 10**9, 5), 2) == []
    assert serve("h1", DATA, card, Fetch(1, -5, 3), 2) == []


def filled(*positions: int, items: int = 10) -> Buffer:
    buffer = Buffer(items, 1000)
    buffer.add(Item(position, b"%d" % position) for position in positions)
    return buffer


def test_a_buffer_ends_before_the_first_gap() -> None:
    buffer = filled(1, 2, 4, 5)
    assert (buffer.last, [item.position for item in buffer.since(1)]) == (2, [1, 2])
    buffer.add([Item(3, b"3")])
    assert buffer.last == 5


def test_a_buffer_forgets_also_what_has_not_come() -> None:
    buffer = filled(1, 2, 6, 7)
    buffer.trim(5)
    assert (buffer.floor, buffer.last, len(buffer.held), buffer.size) == (5, 7, 2, 2)
    buffer.trim(7)
    assert (buffer.floor, buffer.last, buffer.size) == (7, 7, 0)


def test_a_buffer_takes_no_more_than_it_may() -> None:
    buffer = filled(*range(1, 20), items=3)
    assert (buffer.last, buffer.overflowed) == (3, True)
    buffer.begin(10)
    assert not buffer.overflowed


def test_a_position_beyond_all_reason_costs_nothing() -> None:
    buffer = filled(1, 10**18)
    buffer.trim(10**18)
    assert buffer.last == 10**18


def test_the_next_move_is_where_the_host_changes() -> None:
    steps = even_steps(0.0, 10.0, 4)
    plan = certain_plan(steps, ["b1", "b1", "b2", "b1"], 1.0)
    arrival = Expected(("b2",), (1.0,), 5.0)
    plan = Plan(steps, (*plan.stages[:2], (arrival,), plan.stages[3]))
    assert next_move(plan, "b1", 0.0) == Move("b2", 5.0, 20.0)
    assert next_move(plan, "b1", 21.0) == Move("b2", 5.0, 20.0), "it is late"
    assert next_move(plan, "b2", 21.0) == Move("b1", 30.0, 30.0)
    assert next_move(plan, "b1", 35.0) is None
