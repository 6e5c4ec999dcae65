"""Many lines at once are read as records of their kind alone: that says what reading each line by itself
says.
"""

import json
import random
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from node_agent.apps.records import record_format
from node_agent.model.checked import Refused
from node_agent.model.telemetry import Event
from node_agent.telemetry.kinds import tag_of

FORMAT = record_format()
EVENTS = {tag_of(event): event for event in FORMAT.events}
FIELDS = ("run", "node", "boot", "app", "seq", "t_ns", "kind", *FORMAT.kinds_with)
ODD: tuple[Any, ...] = (
    0,
    1,
    -1,
    2**62,
    2**63,
    1.5,
    True,
    "",
    "text",
    None,
    [],
    [1],
    [0, 2],
    ["a", "b"],
    [[1]],
    {"a": 1},
)


def value(draw: random.Random, kind: Any) -> Any:
    """Returns a value of the type ``kind``, as JSON has it."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return value(draw, draw.choice(get_args(kind)))
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if parts[1:] == (...,):
            return [value(draw, parts[0]) for _ in range(draw.randrange(3))]
        return [value(draw, part) for part in parts]
    if get_origin(kind) is dict:
        return {}
    if isinstance(kind, type) and issubclass(kind, Struct):
        return {name: value(draw, hint) for name, hint in get_type_hints(kind).items()}
    drawn: Any = {
        int: draw.choice([1, 2]),
        float: draw.choice([0.0, 1.5, 2]),
        str: draw.choice(["", "a"]),
        bool: draw.random() < 0.5,
        type(None): None,
    }[kind]
    return drawn


def record(draw: random.Random, kind: type[Event]) -> dict[str, Any]:
    envelope = {"run": "r", "node": "n", "boot": 1, "app": draw.choice(["", "q"]), "seq": 2, "t_ns": 3}
    own = {name: value(draw, hint) for name, hint in get_type_hints(kind).items()}
    return {**envelope, "kind": tag_of(kind), **own}


def said(found: Any) -> tuple[str, list[Any]]:
    return FORMAT.flaw(found), [getattr(found, name) for name in FIELDS]


def agree(line: bytes) -> bool:
    """Asserts that both ways say the same of ``line``; returns whether the quick one took it."""
    quick = FORMAT.checked.decode_lines(line)
    if quick is None:
        return False
    assert said(quick[0]) == said(FORMAT.decode(line))
    return True


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_a_record_of_its_kind_is_read_the_quick_way(kind: str) -> None:
    draw = random.Random(kind)
    for _ in range(20):
        assert agree(json.dumps(record(draw, EVENTS[kind])).encode() + b"\n")


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_an_altered_record_is_judged_alike(kind: str) -> None:
    draw = random.Random(kind)
    for _ in range(300):
        fields = list(record(draw, EVENTS[kind]).items())
        for _ in range(draw.randrange(1, 3)):
            match draw.randrange(4):
                case 0:
                    fields.pop(draw.randrange(len(fields)))
                case 1:
                    fields.append((draw.choice(FIELDS), draw.choice(ODD)))
                case 2:
                    at = draw.randrange(len(fields))
                    fields[at] = (fields[at][0], draw.choice(ODD))
                case _:
                    fields.append(
                        (draw.choice(["kind", "unknown"]), draw.choice([kind, "other", "agent_stop"]))
                    )
        draw.shuffle(fields)
        text = ",".join(f"{json.dumps(name)}:{json.dumps(each)}" for name, each in fields)
        line = b"{" + text.encode() + b"}\n"
        try:
            agree(line)
        except Refused as error:  # by itself: then the quick way may not have taken it
            pytest.fail(f"taken among others, and refused alone ({error}): {line!r}")


def test_a_line_that_does_not_fit_leaves_all_to_the_careful_way() -> None:
    draw = random.Random(1)
    good = json.dumps(record(draw, EVENTS["agent_stop"])).encode() + b"\n"
    later = good.replace(b'"reason"', b'"reason_of_a_newer_version": 1, "reason"')
    assert FORMAT.checked.decode_lines(good * 3) is not None
    assert FORMAT.checked.decode_lines(good + later + good) is None
    assert said(FORMAT.decode(later)) == said(FORMAT.decode(good))
