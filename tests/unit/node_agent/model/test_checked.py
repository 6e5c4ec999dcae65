"""The bounds within which foreign bytes are decoded, and what is counted of those refused."""

import json
from typing import Any

import msgspec
import pytest

from node_agent.model.checked import Checked, Long, Refused, check_depth
from node_agent.model.refusals import OTHERS, Refusals


class Said(msgspec.Struct):
    number: Long


def refusal(decoder: Checked[Any], data: bytes) -> str:
    with pytest.raises(Refused) as refused:
        decoder.decode(data)
    return refused.value.reason


@pytest.mark.parametrize("depth", [33, 500, 5_000, 100_000])
def test_deep_json_is_refused(depth: int) -> None:
    assert refusal(Checked(Any, 10**6), b"[" * depth + b"]" * depth) == "depth"


@pytest.mark.parametrize("depth", [33, 500, 100_000])
def test_deep_msgpack_is_refused(depth: int) -> None:
    assert refusal(Checked(Any, 10**6, "msgpack"), b"\x91" * depth + b"\xc0") == "depth"


def test_depth_in_a_field_that_nobody_asked_for_is_refused() -> None:
    data = b'{"number": 1, "other": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert refusal(Checked(Said, 10**6), data) == "depth"


def test_what_is_too_large_is_not_even_looked_at() -> None:
    assert refusal(Checked(Said, 10), b"[" * 11) == "size"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"number": 9223372036854775808}',
        b'{"number": ' + b"9" * 6000 + b"}",
        b'{"number": "\xff"}',
        b'{"number": NaN}',
    ],
)
def test_what_is_malformed_or_out_of_range_is_refused(data: bytes) -> None:
    assert refusal(Checked(Said, 10**6), data) == "malformed"


def test_what_is_within_bounds_is_decoded() -> None:
    nested: Any = 1
    for place in range(31):
        nested = {"in": nested} if place % 2 else [nested]
    check_depth(nested)
    assert Checked(Any, 10**6).decode(json.dumps(nested).encode()) == nested
    assert Checked(Said, 100).decode(b'{"number": -3}') == Said(-3)


def test_sources_beyond_the_bound_are_counted_together() -> None:
    refusals = Refusals(most_sources=2)
    for source in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.1"):
        refusals.add("connection", source, "forged")
    counted = {refusal.source: refusal.count for refusal in refusals}
    assert counted == {"10.0.0.1": 2, "10.0.0.2": 1, OTHERS: 2}
    assert refusals.total == 5
