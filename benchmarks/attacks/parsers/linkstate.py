"""Hostile answers of a routing daemon on the node: they contain what strangers on the radio said."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.attacks.mutation import changed_bytes, changed_message
from node_agent.aodv import reader as aodv
from node_agent.linkstate import ask, babeld, netjson, olsrd_jsoninfo, olsrd_txtinfo, oonf
from node_agent.linkstate.measured import graph_of
from node_agent.linkstate.reader import LinkStateError, Reading

DATA = Path(__file__).parents[3] / "tests" / "data"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


class Answers:
    """``parse`` takes as many answers as there are ``files``; one of them is changed."""

    def __init__(self, parse: Callable[..., Reading], answers: Sequence[bytes], as_json: bool) -> None:
        self._parse = parse
        self._answers = answers
        self._values: list[Any] = [msgspec.json.decode(each) for each in answers] if as_json else []

    def draw(self, rng: random.Random) -> tuple[bytes, ...]:
        which = rng.randrange(len(self._answers))
        if self._values and rng.random() < 0.8:
            bad = changed_message((self._values[which],), "json", rng)
        else:
            bad = changed_bytes((self._answers[which],), rng)
        return tuple(bad if number == which else each for number, each in enumerate(self._answers))

    def feed(self, message: tuple[bytes, ...]) -> None:
        try:
            bodies = [ask.body(_HEAD % len(each) + each, "here") for each in message]
            reading = self._parse(*bodies)
            for metric in (None, "hops", "log_delivery"):
                graph_of(reading, {"10.0.0.1": "a"}, metric, 1)
        except LinkStateError:
            pass

    def close(self) -> None:
        pass


def _read(*names: str) -> list[bytes]:
    return [(DATA / name).read_bytes() for name in names]


def jsoninfo(directory: Path) -> Answers:
    names = (f"olsrd/node1/json_{name}.json" for name in ("topology", "mid", "interfaces"))
    return Answers(olsrd_jsoninfo.parse, _read(*names), True)


def txtinfo(directory: Path) -> Answers:
    return Answers(olsrd_txtinfo.parse, _read(*["olsrd/node1/txt_all.txt"] * 3), False)


def netjson_graph(directory: Path) -> Answers:
    return Answers(netjson.parse, _read("olsrd/node1/netjson_NetworkGraph.json"), True)


def oonf_tables(directory: Path) -> Answers:
    names = ("olsrv2info_originator", "nhdpinfo_neighbor", "olsrv2info_edge")
    return Answers(oonf.parse, _read(*(f"oonf/node1/{name}.json" for name in names)), True)


def babeld_dump(directory: Path) -> Answers:
    return Answers(babeld.parse, _read("babeld/dump.txt"), False)


def aodv_routes(directory: Path) -> Answers:
    sound = msgspec.json.encode(aodv.Routes("10.0.0.1", {"10.0.0.2": 1, "10.0.0.3": 2}))
    return Answers(aodv.parse, [sound], True)
