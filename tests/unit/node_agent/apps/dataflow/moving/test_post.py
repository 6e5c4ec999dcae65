"""What nodes say about operators that move: in order and once, and nothing that is not theirs to say."""

from typing import cast

import pytest

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Migration, Moving, Replica
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.moving.frames import (
    BOOTS,
    MOST_BYTES,
    PART,
    Envelope,
    Have,
    Incoming,
    Part,
    cut,
    encode,
)
from node_agent.apps.dataflow.moving.link import Connection, Link
from node_agent.apps.dataflow.moving.post import Roles, opened
from node_agent.apps.dataflow.moving.tuples import pack
from node_agent.apps.dataflow.operators.synthetic import synthetic_chain
from node_agent.migration.live import wire
from node_agent.migration.live.messages import Ack, Copy, Items, Message, Outputs, Release, Start, Trim
from node_agent.migration.live.values import Item, Savepoint
from node_agent.model.checked import Refused
from node_agent.transport.errors import Impossible
from node_agent.transport.messages import Pair

pytestmark = pytest.mark.unit

PLAN = DeploymentPlan(
    synthetic_chain(2),
    (
        Replica("camera", 0, "a"),
        Replica("detect", 0, "b"),
        Replica("recognise", 0, "c"),
        Replica("screen", 0, "e"),
    ),
    (Moving("recognise", ("c", "d"), "e", (Migration(1.0, "d"),)),),
)
ROLES = {"recognise": Roles(PLAN, PLAN.moving[0])}
GOOD = pack(StreamTuple("camera/0", 1, 0, 5, 0, (b"x",)))
FOREIGN = pack(StreamTuple("screen/0", 1, 0, 5, 0, (b"x",)))
BACKWARDS = pack(StreamTuple("camera/0", 1, 4, 5, 0, (b"x",)))


def envelope(sender: str, receiver: str, message: Message, operator: str = "recognise") -> bytes:
    return encode(Envelope(operator, sender, receiver, wire.encode(message)))


def test_where_roles_are() -> None:
    assert ROLES["recognise"].nodes == {
        "c": "c", "d": "d", "detect/0": "b", "screen/0": "e", "recognise/coordinator": "e",
    }  # fmt: skip


def test_what_belongs_to_a_role_is_read() -> None:
    message = Items((Item(1, GOOD),))
    said = opened(PLAN, ROLES, "c", "b", envelope("detect/0", "c", message))
    assert said == ("recognise", "detect/0", "c", message)
    opened(PLAN, ROLES, "e", "d", envelope("d", "screen/0", Outputs(1, (GOOD,))))


@pytest.mark.parametrize(
    ("own", "node", "data", "word"),
    [
        ("c", "b", envelope("detect/0", "c", Ack(1)), "sender"),
        ("c", "a", envelope("detect/0", "c", Items(())), "sender"),
        ("c", "d", envelope("recognise/coordinator", "c", Release(1)), "sender"),
        ("c", "x", envelope("x", "c", Release(1)), "sender"),
        ("c", "b", envelope("detect/0", "d", Items(())), "receiver"),
        ("c", "b", envelope("detect/0", "nobody", Items(())), "receiver"),
        ("c", "b", envelope("detect/0", "c", Items(()), "detect"), "operator"),
        ("b", "c", envelope("c", "detect/0", Outputs(1, ())), "receiver"),
        ("c", "b", envelope("detect/0", "c", Items((Item(1, b"rubbish"),))), "tuple"),
        ("c", "b", envelope("detect/0", "c", Items((Item(1, FOREIGN),))), "tuple"),
        ("c", "b", envelope("detect/0", "c", Items((Item(1, BACKWARDS),))), "tuple"),
        ("d", "c", envelope("c", "d", Copy(1, "detect/0", (Item(1, FOREIGN),))), "tuple"),
        ("d", "c", envelope("c", "d", Start(1, Savepoint((("detect/0", 1),)), (FOREIGN,))), "tuple"),
        ("e", "d", envelope("d", "screen/0", Outputs(1, (FOREIGN,))), "tuple"),
        ("b", "e", envelope("screen/0", "detect/0", Trim(1)), "sender"),
    ],
)  # fmt: skip
def test_all_else_is_refused(own: str, node: str, data: bytes, word: str) -> None:
    with pytest.raises(Impossible, match=f"^{word}$"):
        opened(PLAN, ROLES, own, node, data)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x91" * 100_000, bytes(MOST_BYTES + 1), encode(("a", "b"))])
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        opened(PLAN, ROLES, "c", "b", data)


def parts(session: int, *datas: bytes) -> list[Part]:
    pieces = [piece for data in datas for piece in cut(data)]
    return [Part(session, number, more, data) for number, (more, data) in enumerate(pieces, 1)]


def test_large_messages_come_in_parts() -> None:
    large = bytes(range(256)) * (PART // 256 * 2 + 1)
    incoming = Incoming()
    taken = [incoming.take(part) for part in parts(BOOTS, b"small", large)]
    assert taken == [(False, b"small"), (False, None), (False, None), (False, large)]


def test_parts_that_are_missing_are_asked_for_and_repeated_ones_left_out() -> None:
    incoming, (one, two, three) = Incoming(), parts(BOOTS, b"1", b"2", b"3")
    assert incoming.take(one) == (False, b"1")
    assert incoming.take(three) == (True, None)
    assert incoming.take(one) == (False, None)
    assert incoming.take(two) == (False, b"2") and incoming.take(three) == (False, b"3")


def test_a_new_session_begins_anew_and_an_old_one_is_over() -> None:
    incoming = Incoming()
    incoming.take(Part(BOOTS, 1, True, b"half of "))
    assert incoming.take(Part(2 * BOOTS, 1, False, b"all")) == (False, b"all")
    assert incoming.take(Part(BOOTS, 2, False, b"it")) == (False, None)


def test_a_message_without_end_is_refused() -> None:
    incoming, data = Incoming(), bytes(PART)
    with pytest.raises(Impossible):
        for number in range(1, MOST_BYTES // PART + 3):
            incoming.take(Part(BOOTS, number, True, data))


class Wire:
    """A link whose connection takes what it is given."""

    def __init__(self) -> None:
        self.link = Link(1, lambda link: cast(Connection, None), lambda: 0.0)

    def send(self) -> list[Part]:
        made = self.link._next_parts()
        self.link._sent(self.link._session, made)
        return made

    def have(self, boot: int, number: int, session: int = BOOTS, again: bool = False) -> None:
        self.link.said(Pair("a", "b"), Have(boot, session, number, again))


def test_what_was_not_acknowledged_is_sent_again() -> None:
    wire = Wire()
    wire.link.add(b"1")
    wire.link.add(b"2")
    assert [part.number for part in wire.send()] == [1, 2] and wire.send() == []
    wire.have(1, 1)
    wire.link.lost(Pair("a", "b"), (), "broken")
    assert [(part.number, part.data) for part in wire.send()] == [(2, b"2")]
    wire.have(1, 99)
    assert wire.send() == [], "nobody has what was never sent"


def test_what_was_for_an_agent_that_died_is_dropped() -> None:
    wire = Wire()
    wire.link.add(b"1")
    wire.send()
    wire.have(1, 0)
    wire.have(2, 0, again=True)
    wire.link.add(b"2")
    assert [(part.session, part.number, part.data) for part in wire.send()] == [(BOOTS + 1, 1, b"2")]
    wire.have(2, 1)  # about the old session
    wire.have(2, 1, BOOTS + 1)
    wire.link.peer_started(1)
    wire.link.add(b"3")
    assert [(part.session, part.number) for part in wire.send()] == [(BOOTS + 1, 2)]
