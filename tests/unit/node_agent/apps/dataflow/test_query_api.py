"""Queries in Python: functions as operators, the chain, its errors, and the in-process runner."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.testing import ABORT, EOF, PAUSE, run
from node_agent.query import (
    OperatorError,
    Query,
    QueryError,
    count,
    operator,
    retry,
    seconds,
    sink,
    source,
)


@source(rate=5)
def numbers(tau: int, *, first: int = 0) -> bytes | None:
    return b"%d" % (first + tau)


@operator
def double(payload: bytes) -> bytes:
    return payload * 2


@operator
async def slow_upper(payload: bytes, *, context: Context, cpu: float = 0.5) -> bytes:
    await context.compute(cpu)
    return payload.upper()


@operator
def even(payload: bytes) -> bool:
    return int(payload) % 2 == 0


@operator
def letters(payload: bytes) -> list[bytes]:
    return [b"%c" % byte for byte in payload]


@operator
def total(payloads: list[bytes]) -> bytes:
    return b"%d" % sum(map(int, payloads))


@operator
def pair(left: bytes, right: bytes) -> bytes:
    return left + b"|" + right


@operator
def sizes(left: list[bytes], right: list[bytes]) -> bytes:
    return b"%d,%d" % (len(left), len(right))


@operator(key=lambda payload: payload[:1])
def same_letter(left: bytes, right: bytes) -> bytes:
    return left + b"+" + right


@operator
def fragile(payload: bytes) -> bytes:
    return b"%d" % (10 // int(payload))


@operator
def wrong(payload: bytes) -> Any:
    return 5


@sink
def forget(payload: bytes) -> None:
    pass


def test_a_decorated_function_is_still_a_function() -> None:
    assert double(b"a") == b"aa"
    assert asyncio.iscoroutinefunction(slow_upper.function)
    assert double.kind == "tests.unit.node_agent.apps.dataflow.test_query_api.double"


def test_map_filter_and_multiply() -> None:
    flow = Query("q").source(numbers, name="n")
    flow.map(even).map(double).map(letters).sink(forget, name="out")
    built = flow._query.build()
    assert built.names() == ("n", "even", "double", "letters", "out")
    assert built.operator("even").takes == Each()
    assert run(built, {"n": [b"1", b"2", b"3", b"14"]}) == {"out": [b"2", b"2", b"1", b"4", b"1", b"4"]}


def test_windows_and_what_is_left_at_the_end() -> None:
    query = Query("q").source(numbers, name="n").window(count(3, 2), total).sink(name="out")
    assert run(query, {"n": [b"%d" % n for n in range(1, 7)]}) == {"out": [b"6", b"12"]}
    timed = Query("q").source(numbers, name="n").window(seconds(2), total).sink(name="out")
    assert run(timed, {"n": [b"1", b"2", b"3", PAUSE(4), b"4", b"5"]}) == {"out": [b"3", b"3", b"4", b"5"]}
    assert run(timed, {"n": [b"1", b"2", b"3", EOF, b"9"]}) == {"out": [b"3", b"3"]}
    assert run(timed, {"n": [b"1", b"2", b"3", ABORT]}) == {"out": [b"3"]}


def joined(**how: Any) -> Query:
    query = Query("q")
    left, right = query.source(numbers, name="left"), query.source(numbers, name="right")
    return left.join(right, **how).sink(name="out")


def test_joins() -> None:
    lists = {"left": [b"a1", b"b2", b"c3"], "right": [b"b4", b"b5"]}
    assert run(joined(using=pair), lists) == {"out": [b"a1|b4", b"b2|b5"]}
    assert run(joined(using=same_letter, within=seconds(3)), lists) == {"out": [b"b2+b4", b"b2+b5"]}
    assert run(joined(using=sizes, within=seconds(2)), lists) == {"out": [b"2,2", b"1,0"]}


def test_fan_out_and_union() -> None:
    query = Query("q")
    one, two = query.source(numbers, name="one"), query.source(numbers, name="two")
    one.union(two).map(double).sink(name="all")
    one.sink(name="first")
    results = run(query, {"one": [b"1"], "two": [PAUSE(0.5), b"2"]})
    assert results == {"all": [b"11", b"22"], "first": [b"1"]}


def test_computing_takes_no_real_time() -> None:
    query = Query("q").source(numbers, name="n").map(slow_upper, cpu=3600.0).sink(name="out")
    assert run(query, {"n": [b"a", b"b"]}) == {"out": [b"A", b"B"]}


def test_error_policies() -> None:
    def query(**how: Any) -> Query:
        return Query("q").source(numbers, name="n").map(fragile, **how).sink(name="out")

    with pytest.raises(OperatorError, match=r"fragile \(test_query_api.py:\d+\): ZeroDivisionError"):
        run(query(), {"n": [b"0"]})
    results = run(query(on_error="dead_letter"), {"n": [b"5", b"0", b"2"]})
    assert results == {"out": [b"2", b"5"]}
    [letter] = results.dead_letters
    assert letter[:3] == ("fragile", "n/0", 2)
    assert "ZeroDivisionError" in letter.reason
    assert query(on_error=retry(2, "dead_letter")).build().operator("fragile").on_error == ErrorPolicy(
        2, "dead_letter"
    )


def test_a_retry_may_succeed() -> None:
    failures = iter([True, True, False])

    @operator
    def moody(payload: bytes) -> bytes:
        if next(failures):
            raise OSError("not now")
        return payload

    query = Query("q").source(numbers, name="n").map(moody, on_error=retry(2)).sink(name="out")
    assert run(query, {"n": [b"x"]}) == {"out": [b"x"]}


def test_what_is_no_payload_is_told_with_the_function() -> None:
    query = Query("q").source(numbers, name="n").map(wrong).sink(name="out")
    with pytest.raises(OperatorError, match=r"wrong \(test_query_api.py:\d+\) returned int, not bytes"):
        run(query, {"n": [b"x"]})


def test_the_frozen_value_says_it_all() -> None:
    query = Query("q", reliability="exactly_once")
    n = query.source(numbers, name="n", first=5, rate=2.0)
    n.window(count(4), total, on_error="dead_letter", buffer=7).sink(name="out")
    n.join(n.map(double), using=pair).sink(name="other")
    built = query.build()
    assert built.reliability == "exactly_once"
    assert built.operator("n").params == {"first": 5, "rate": 2.0}
    kind = "tests.unit.node_agent.apps.dataflow.test_query_api.total"
    policy = ErrorPolicy(then="dead_letter")
    assert built.operator("total") == OperatorSpec(
        "total", kind, ("n",), {}, CountWindow(4, 4), policy, {"n": 7}
    )
    assert built.operator("pair").takes == SameTau()
    assert seconds(1.5, 0.5) == TimeWindow(1_500_000_000, 500_000_000)
    assert built.origins() == {
        "n": ("n/0",),
        "total": ("total",),
        "out": ("total",),
        "double": ("n/0",),
        "pair": ("pair",),
        "other": ("pair",),
    }


def plain(payload: bytes) -> bytes:
    return payload


def bad_words(query: Query) -> None:
    query._reliability = "at_most_once"  # type: ignore[assignment]
    query.source(numbers, name="My numbers").sink(name="out")


def bad_steps(query: Query) -> None:
    n = query.source(numbers, name="n")
    n.map(plain).sink()  # type: ignore[arg-type]
    n.map(pair)
    n.map(double, factor=3)
    n.sink(double)
    n.window(count(2), pair)


def bad_graph(query: Query) -> None:
    n, m = query.source(numbers, name="n"), query.source(numbers, name="m")
    n.map(double)
    n.union(m).window(count(0), sizes).sink(name="nn")
    n.join(using=total, name="alone", buffer=0).sink(name="out")


def bad_names(query: Query) -> None:
    n = query.source(numbers)
    n.map(double).sink(name="out")
    n.map(double).sink(name="out")


def bad_streams(query: Query) -> None:
    n, m = query.source(numbers, name="n"), query.source(numbers, name="m")
    n.union(m).window(count(2), sizes).sink(name="one")
    by_time = n.window(seconds(2), total, name="by_time")
    by_time.window(count(2), total, name="again").sink(name="two")
    by_time.join(m, using=pair).sink(name="three")
    n.union(m).map(double, name="both").join(m, using=pair, name="many").sink(name="four")
    n.union(n.map(double)).map(letters).sink(name="five")


@pytest.mark.parametrize("build", [bad_words, bad_steps, bad_graph, bad_names, bad_streams])
def test_everything_wrong_is_told_at_once_with_its_line(build: Any) -> None:
    query = Query("q")
    build(query)
    with pytest.raises(QueryError) as raised:
        query.build()
    # Where steps stand counts from the function that adds them; where functions stand does not matter here.
    start = build.__code__.co_firstlineno
    told = re.sub(
        r"test_query_api\.py:(\d+), step", lambda m: f"line {int(m[1]) - start}, step", str(raised.value)
    )
    told = re.sub(r"test_query_api\.py:\d+", "test_query_api.py:N", told)
    assert told + "\n" == (Path(__file__).parents[3] / "bad_queries" / f"{build.__name__}.txt").read_text()
