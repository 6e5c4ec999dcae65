"""Answers of daemons, mutated: whatever sits on a daemon's port, a reading or a typed error comes of it."""

import random
import re
from collections.abc import Callable
from functools import partial

import pytest

from node_agent.aodv import reader as aodv
from node_agent.linkstate import babeld, kernel, netjson, olsrd_jsoninfo, olsrd_txtinfo, oonf
from node_agent.linkstate.measured import graph_of
from node_agent.linkstate.reader import Garbage, LinkStateError, Reading
from tests.unit.captured import captured

TURNS = 3_000
DEEP = b'{"unknown": ' + b"[" * 100_000
NUMBERS = (
    *(b"-1", b"0", b"1e400", b"5e-324", b"NaN", b"null", b'"x"', b"18446744073709551616", b"-0.0", b"{}"),
    *(b"9" * 400, b"9" * 5_000, b"[" * 2_000, b'"' + b"\\u0000" * 99 + b'"'),
)


def by_text(parse: Callable[[bytes, bytes, bytes], Reading]) -> Callable[[bytes], Reading]:
    return lambda answer: parse(answer, answer, answer)


def of_kernel(answer: bytes) -> Reading:
    return kernel.parse(answer.decode("latin-1"), "10.0.0.1")


MID, INTERFACES = (captured(f"olsrd/node1/json_{table}.json") for table in ("mid", "interfaces"))
ORIGINATOR, NEIGHBOUR, EDGE = (
    captured(f"oonf/node1/{name}.json")
    for name in ("olsrv2info_originator", "nhdpinfo_neighbor", "olsrv2info_edge")
)
READERS: dict[str, tuple[Callable[[bytes], Reading], bytes]] = {
    "jsoninfo topology": (
        lambda answer: olsrd_jsoninfo.parse(answer, MID, INTERFACES),
        captured("olsrd/node1/json_topology.json"),
    ),
    "jsoninfo mid": (lambda answer: olsrd_jsoninfo.parse(b'{"topology": []}', answer, INTERFACES), MID),
    "jsoninfo interfaces": (
        lambda answer: olsrd_jsoninfo.parse(b'{"topology": []}', MID, answer),
        INTERFACES,
    ),
    "txtinfo": (by_text(olsrd_txtinfo.parse), captured("olsrd/node1/txt_all.txt")),
    "netjson": (netjson.parse, captured("olsrd/node1/netjson_NetworkGraph.json")),
    "oonf edges": (partial(oonf.parse, ORIGINATOR, NEIGHBOUR), EDGE),
    "oonf neighbours": (lambda answer: oonf.parse(ORIGINATOR, answer, EDGE), NEIGHBOUR),
    "babeld": (babeld.parse, captured("babeld/dump.txt")),
    "aodv": (aodv.parse, b'{"address": "10.0.0.1", "hops": {"10.0.0.2": 1, "10.0.0.3": 2}}'),
    "kernel": (
        of_kernel,
        b"Iface\tDestination\tGateway\tFlags\tMetric\tMask\nwlan0\t0200000A\t00000000\t0001\t2\tFFFFFFFF\n",
    ),
}


def mutated(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 3)):
        match rng.randrange(5):
            case 0:
                data = data[: rng.randrange(len(data) + 1)]
            case 1 if data:
                at = rng.randrange(len(data))
                data = data[:at] + rng.randbytes(rng.randint(1, 4)) + data[at + rng.randint(0, 4) :]
            case 2 if numbers := list(re.finditer(rb"\d+(\.\d+)*", data)):
                found = rng.choice(numbers)
                data = data[: found.start()] + rng.choice(NUMBERS) + data[found.end() :]
            case 3 if lines := data.splitlines(keepends=True):
                lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
                data = b"".join(lines)
            case _:
                at = rng.randrange(len(data) + 1)
                data = data[:at] + data[at + rng.randint(1, 40) :]
    return data


@pytest.mark.parametrize("name", READERS)
def test_any_answer_is_a_reading_or_a_typed_error(name: str) -> None:
    parse, answer = READERS[name]
    assert parse(answer).metric
    rng = random.Random(name)
    outcomes = {True: 0, False: 0}
    for _ in range(TURNS):
        try:
            graph_of(parse(mutated(answer, rng)), {}, None, 0)
            outcomes[True] += 1
        except LinkStateError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 0, outcomes


@pytest.mark.parametrize("name", READERS)
def test_deep_answers_are_garbage(name: str) -> None:
    parse, _ = READERS[name]
    with pytest.raises(Garbage):
        parse(DEEP)
