"""Messages by which plans are agreed on, as bytes: they come back as they were, and rubbish is refused."""

import math
import random
from typing import Any

import msgspec
import pytest

from node_agent.migration.messages import (
    Message,
    PlanAccepted,
    PlanDecided,
    PlanUpdated,
    Reserve,
    ReserveReply,
    Revoke,
)
from node_agent.migration.plan import Expected, Plan, certain_plan, chain, even_steps
from node_agent.migration.wire import MOST_BYTES, decode, encode
from node_agent.model.checked import Refused

pytestmark = pytest.mark.unit

STEPS = even_steps(4.0, 2.0, 3)
CERTAIN = certain_plan(STEPS, ["b1", "b2", "b2"], 12.5)
COPIED = Plan(
    STEPS,
    (
        (Expected(("b1",), (3.0,)),),
        (Expected(("b2",), (3.0,), 4.0, (("speed", 1.5),)),),
        (Expected(("b1", "b2"), (1.0, 2.0)),),
    ),
)
JOINT = {("b1", "b1"): 0.25, ("b1", "b2"): 0.25, ("b2", "b2"): 0.5}
UNCERTAIN = chain(STEPS, {"b1": 0.5, "b2": 0.5}, [JOINT, {("b1", "b1"): 0.25, ("b2", "b2"): 0.75}], 7.0)
MESSAGES: list[Message] = [
    *(PlanUpdated(3, plan, final) for plan in (CERTAIN, COPIED, UNCERTAIN) for final in (True, False)),
    PlanAccepted(3),
    PlanDecided(4, True),
    Reserve(2, 1.0, ((0.0, 4.0), (8.0, math.inf))),
    ReserveReply(2, False),
    Revoke(2),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_come_back_as_they_were(message: Message) -> None:
    assert decode(encode(message)) == message


def test_rubbish_is_refused_and_nothing_else_happens() -> None:
    draw = random.Random(1)
    for message in MESSAGES:
        data = encode(message)
        for _ in range(200):
            broken = bytearray(data)
            for _ in range(draw.randint(1, 4)):
                broken[draw.randrange(len(broken))] = draw.randrange(256)
            try:
                decode(bytes(broken[: draw.randint(1, len(broken))]))
            except Refused:
                continue
    with pytest.raises(Refused, match="more than"):
        decode(bytes(MOST_BYTES + 1))


def packed(**changes: Any) -> bytes:
    """An uncertain plan with some of its parts replaced."""
    names = ("times", "end", "stages", "start", "moves")
    tag, version, plan, final = msgspec.msgpack.decode(encode(PlanUpdated(1, UNCERTAIN)))
    parts = {**dict(zip(names, plan, strict=True)), **changes}
    return msgspec.msgpack.encode([tag, version, [parts[name] for name in names], final])


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"times": [4.0, 4.0, 8.0]}, "must begin after the last"),
        ({"end": 3.0}, "must begin after the last"),
        ({"times": [math.nan, 6.0, 8.0]}, "expected"),
        ({"start": [0.5, 0.4]}, "are 1 together"),
        ({"start": [1.0]}, "a probability for each placement"),
        ({"moves": []}, "from each step to the next"),
        ({"moves": [[[0.5, 0.5]], [[1.0]]]}, "each two placements"),
        ({"moves": [[[0.5, 0.5], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]]]}, "are 1 together"),
        ({"stages": [[[["b1", "b2"], [1.0], None, []]]] * 3}, "a rate for each"),
        ({"stages": [[]] * 3}, "expected"),
        ({"stages": [[[["b1"], [-1.0], None, []]]] * 3}, "expected"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        decode(packed(**changes))


def test_a_span_ends_after_it_begins() -> None:
    with pytest.raises(Refused, match="before it begins"):
        decode(encode(Reserve(1, 1.0, ((4.0, 2.0),))))
