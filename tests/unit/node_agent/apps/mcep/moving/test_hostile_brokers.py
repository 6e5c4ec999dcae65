"""What brokers may not say of operators that move, and notes that cannot be."""

import random
from dataclasses import replace
from math import inf
from typing import Any

import msgspec
import pytest

from benchmarks.mcep.rebuilding import Rebuilding
from node_agent.apps.mcep.claims import Claims
from node_agent.apps.mcep.geometry import Box
from node_agent.apps.mcep.moving import operators
from node_agent.apps.mcep.moving.messages import (
    Agreed,
    Arrived,
    Handed,
    Hosted,
    JointAt,
    Moves,
    Rates,
    Relocate,
    Role,
    Said,
    Told,
    Visited,
    Wish,
)
from node_agent.apps.mcep.moving.mobile import Mobile, leaves_of
from node_agent.apps.mcep.moving.note import MOST_NOTE, decode_note
from node_agent.apps.mcep.moving.places import neighbourhoods
from node_agent.apps.mcep.moving.settings import LIMITS, Migration, Planning
from node_agent.apps.mcep.packed import encode_message
from node_agent.apps.mcep.wire import decode, encode
from node_agent.apps.mcep.wiring import execution
from node_agent.migration.live.messages import Ack, Expect, Finished, Items, Outputs, StreamTo
from node_agent.migration.live.values import Item, Order, Savepoint, card_of
from node_agent.migration.messages import PlanUpdated, Reserve, ReserveReply
from node_agent.migration.plan import certain_plan, even_steps
from node_agent.model.checked import Refused
from tests.unit.node_agent.apps.mcep.moving.test_moving_operators import Watched, worlds

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

GIVEN = next(each for each in worlds(20) if len(each.query.graph.operators) > 1)
HOST, HOME = Role("host"), Role("home")


class Scene:
    """Two operators in turn, their brokers, and what they are called."""

    def __init__(self) -> None:
        town = Watched(GIVEN, lambda draw, names: Migration(planning=Planning()))
        self.deployment = next(iter(town.brokers.values())).deployment
        (self.deployed,) = self.deployment.queries
        graph = GIVEN.query.graph
        joints = [each for each in graph.streams if each.producer in graph.by_name]
        self.joint = next(each for each in joints if each.successor in graph.by_name)
        self.around = neighbourhoods(self.deployed, self.deployment.brokers)
        self.home = self.deployed.home
        self.other = next(each for each in self.deployment.brokers if each != self.home)

    def refusal(self, sender: str, receiver: str, said: Said) -> str | None:
        claims = Claims(receiver, self.deployment)
        return claims.refusal(sender, Moves(GIVEN.query.name, said))


SCENE = Scene()
OPERATOR, NEXT = SCENE.joint.producer, SCENE.joint.successor
HOST_OF = SCENE.deployed.hosts
STREAM = (
    next(name for name, channel in SCENE.around[OPERATOR].streams.items() if channel.origin)
    if any(channel.origin for channel in SCENE.around[OPERATOR].streams.values())
    else ""
)
SINK = f"to {NEXT}"
STEPS = even_steps(0.0, 1.0, 3)


def order(source: str, target: str) -> Order:
    around = SCENE.around[OPERATOR]
    return Order(1, source, target, card_of(b""), tuple(around.streams), tuple(around.sinks))


def told(sender: Role, receiver: Role, message: Any) -> Told:
    return Told(OPERATOR, sender, receiver, message)


def lies() -> list[tuple[str, str, Said]]:
    home, other = SCENE.home, SCENE.other
    event = encode_message(GIVEN.events[0])
    plan = certain_plan(STEPS, [home] * 3, 1.0)
    astray = certain_plan(STEPS, ["nowhere"] * 3, 1.0)
    found: list[tuple[str, str, Said]] = [
        ("car0", home, told(HOST, HOME, Finished(1, "moved"))),
        (other, home, told(HOME, HOST, Expect(order(home, other)))),
        (home, other, told(HOME, HOST, Expect(order(other, home)))),
        (other, home, told(HOST, HOST, Outputs(1, (event,)))),
        (other, home, told(HOST, Role("stream", "from nobody"), StreamTo(home))),
        (other, home, told(HOST, Role("sink", SINK), Ack(1))),
        (other, home, Told("nobody", HOST, HOST, Finished(1, "moved"))),
        (other, home, Relocate(OPERATOR, NEXT, 1, home)),
        (home, other, Relocate(OPERATOR, "nobody", 1, other)),
        (other, home, JointAt(OPERATOR, NEXT, 1, other)),
        (home, other, JointAt(OPERATOR, NEXT, 1, "nowhere")),
        (home, other, Arrived(OPERATOR, NEXT, 1)),
        (home, other, Handed(OPERATOR, NEXT, 1, 0, "nowhere", 1, other, 1, 0, (), True)),
        (other, home, Hosted(OPERATOR, other)),
        (home, other, Wish(OPERATOR, other, 0.0, 1.0, "")),
        (HOST_OF[OPERATOR], home, Wish(OPERATOR, "nowhere", 0.0, 1.0, "")),
        (other, home, Visited("nobody", 1.0)),
        (other, home, Rates((("nothing", 1.0),))),
        (home, HOST_OF[NEXT], Agreed(NEXT, OPERATOR, PlanUpdated(1, astray))),
        (HOST_OF[OPERATOR], HOST_OF[NEXT], Agreed(NEXT, OPERATOR, PlanUpdated(1, plan, True))),
        (HOST_OF[OPERATOR], other, Agreed(NEXT, OPERATOR, Reserve(1, 1.0, ()))),
        (other, HOST_OF[OPERATOR], Agreed(OPERATOR, NEXT, ReserveReply(1, True))),
    ]
    if STREAM:
        wrong = next(
            b for b in SCENE.deployment.brokers if b != SCENE.around[OPERATOR].streams[STREAM].origin
        )
        right = SCENE.around[OPERATOR].streams[STREAM].origin
        items = Items((Item(1, encode_message(GIVEN.events[0]._replace(type="nothing"))),))
        found += [
            (wrong, home, told(Role("stream", STREAM), HOST, items)),
            (right, home if right != home else other, told(Role("stream", STREAM), HOST, items)),
        ]
    return found


@pytest.mark.parametrize("sender, receiver, said", lies(), ids=lambda each: type(each).__name__)
def test_a_broker_is_believed_only_about_itself(sender: str, receiver: str, said: Said) -> None:
    assert SCENE.refusal(sender, receiver, said) is not None


def test_what_machines_say_comes_back_as_it_was() -> None:
    for _, _, said in lies():
        moves = Moves("q", said)
        assert decode(encode(moves)) == moves


def test_rubbish_is_refused_and_nothing_else_happens() -> None:
    draw = random.Random(2)
    for _, _, said in lies():
        data = encode(Moves("q", said))
        for _ in range(100):
            broken = bytearray(data)
            for _ in range(draw.randint(1, 4)):
                broken[draw.randrange(len(broken))] = draw.randrange(256)
            try:
                decode(bytes(broken))
            except Refused:
                continue


def test_a_note_that_cannot_be_is_refused_and_nothing_else_happens() -> None:
    draw = random.Random(3)
    network = Rebuilding(GIVEN, share=0.02)
    notes: list[tuple[str, Savepoint]] = []
    made = network._made

    def noted(name: str, savepoint: Savepoint) -> Any:
        if savepoint.at:
            notes.append((name, savepoint))
        return made(name, savepoint)

    network._made = noted  # type: ignore[method-assign]
    network.run()
    assert notes
    refused = 0
    for name, savepoint in notes[:20]:
        operator = execution(GIVEN.query, name, network._servers)
        decode_note(savepoint, operator)
        for _ in range(100):
            broken = bytearray(savepoint.at)
            broken[draw.randrange(len(broken))] = draw.randrange(256)
            try:
                decode_note(Savepoint(savepoint.inputs, savepoint.outputs, bytes(broken)), operator)
            except Refused:
                refused += 1
        with pytest.raises(Refused):
            decode_note(Savepoint(savepoint.inputs[:-1], savepoint.outputs, savepoint.at), operator)
        content = msgspec.msgpack.decode(savepoint.at)
        content[0] = [0] * len(content[0])  # it took nothing, and its windows hold events
        if any(position for _, position in savepoint.inputs) or any(any(p[5]) for p in content[11]):
            with pytest.raises(Refused):
                changed = msgspec.msgpack.encode(content)
                decode_note(Savepoint(savepoint.inputs, savepoint.outputs, changed), operator)
    assert refused
    with pytest.raises(Refused, match="more than"):
        decode_note(Savepoint(notes[0][1].inputs, 0, bytes(MOST_NOTE + 1)), operator)


def test_a_joint_that_never_ends_is_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "LIMITS", replace(LIMITS, bytes=10_000))
    town = Watched(GIVEN, lambda draw, names: Migration())
    holder = HOST_OF[OPERATOR]
    broker = next(each for name, each in town.brokers.items() if name != holder)
    event = Item(1, encode_message(GIVEN.events[0]))
    piece = Handed(OPERATOR, NEXT, 1, 0, holder, 1, holder, 1, 1, (event,), False)
    for _ in range(1000):
        broker.receive(holder, Moves(GIVEN.query.name, piece))
    (moving,) = broker.moving.values()
    (pieces,) = moving._pieces.values()
    assert 0 < sum(len(item.payload) for each in pieces for item in each.kept) < 10_000
    assert broker.refused == 1000 - len(pieces) > 0


def test_what_an_operator_never_has_done_with_fills_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host may take everything and never say that it needs it no more. Clients are not heard then."""
    monkeypatch.setattr(operators, "LIMITS", replace(LIMITS, items=100))
    town = Watched(GIVEN, lambda draw, names: Migration())
    kept = [
        (each, up) for broker in town.brokers.values() for each in broker.moving.values() for up in each._ups
    ]
    moving, (successor, stream) = kept[0]
    channel = moving._around[successor].streams[stream]
    for number in range(150):
        assert moving.waiting == max(0, number - 100)
        moving.emit(successor, channel, GIVEN.events[0])


def test_visits_that_have_not_happened_yet_hide_none_that_did() -> None:
    boxes = {name: Box(100.0 * n, 0.0, 100.0 * (n + 1), 100.0) for n, name in enumerate(("b1", "b2", "b3"))}
    mobile = Mobile(Planning(mobiles="learned"), leaves_of(boxes), 50.0)
    mobile.visited("car", "b3", 1e9, -inf)  # nobody knows yet which time it is
    for leaf, t in (("b1", 5.0), ("b2", 15.0), ("b3", 1e8), ("b1", 25.0)):
        mobile.visited("car", leaf, t, min(t, 25.0))
    assert [(each.leaf, each.t) for each in mobile.visits["car"]] == [("b1", 5.0), ("b2", 15.0), ("b1", 25.0)]
