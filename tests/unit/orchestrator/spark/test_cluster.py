"""Masters as users write them; one that does not answer is one clear error, in bounded time."""

import socket
import threading
import time
from typing import Any

import pytest

from orchestrator.errors import BadInput, RoveError
from orchestrator.spark import cluster
from orchestrator.spark.cluster import HERE, Kind, parse_master, reach
from orchestrator.spark.placing import parse_conf, settings_at


@pytest.mark.parametrize(
    ("text", "kind", "addresses"),
    [
        ("local", Kind.LOCAL, ()),
        ("local[2]", Kind.LOCAL, ()),
        ("local[*]", Kind.LOCAL, ()),
        ("spark://head:7077", Kind.STANDALONE, (("head", 7077),)),
        ("spark://a:7077,b.lab:7078", Kind.STANDALONE, (("a", 7077), ("b.lab", 7078))),
        ("spark://[fe80::1]:7077", Kind.STANDALONE, (("fe80::1", 7077),)),
        ("yarn", Kind.YARN, ()),
        ("k8s://https://10.0.0.1:6443", Kind.KUBERNETES, (("10.0.0.1", 6443),)),
        ("k8s://head", Kind.KUBERNETES, (("head", 443),)),
    ],
)
def test_masters_that_can_be_named(text: str, kind: Kind, addresses: tuple[tuple[str, int], ...]) -> None:
    master = parse_master(text)
    assert (master.url, master.kind, master.addresses) == (text, kind, addresses)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "local[0]",
        "local[x]",
        "local[2",
        "head:7077",
        "spark://",
        "spark://head",
        "spark://head:0",
        "mesos://h:1",
        "spark://head:70770",
        "spark://a:1,b",
        "http://head:7077",
        "spark://head:7077/x",
        "k8s://",
        "yarn-client",
    ],
)
def test_what_is_no_master(text: str) -> None:
    with pytest.raises(BadInput, match=r"is no Spark master: write local\[2\], spark://host:7077"):
        parse_master(text)


def test_a_master_that_is_not_there() -> None:
    with socket.socket() as taken:  # bound, but it does not listen
        taken.bind(("127.0.0.1", 0))
        master = parse_master(f"spark://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(RoveError, match=r"no Spark master answers at .* \(Connection refused\)"):
            reach(master)


def test_a_master_that_swallows_packets_is_given_up() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:  # its queue is full then, and further connections hang
            each.setblocking(False)
            each.connect_ex(address)
        started = time.monotonic()
        with pytest.raises(RoveError, match=r"no answer within 0.3 s"):
            reach(parse_master(f"spark://127.0.0.1:{address[1]}"), timeout=0.3)
        assert time.monotonic() - started < 5.0
        for each in waiting:
            each.close()


def test_the_second_of_two_masters_may_answer() -> None:
    with socket.socket() as listening, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        ports = [each.getsockname()[1] for each in (taken, listening)]
        assert reach(parse_master(f"spark://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}")) == "127.0.0.1"


def test_settings_of_users() -> None:
    assert parse_conf(["spark.executor.memory=4g", "spark.x=a=b"]) == {
        "spark.executor.memory": "4g",
        "spark.x": "a=b",
    }
    for bad in ("executor.memory=4g", "spark.executor.memory", "spark.master=yarn"):
        with pytest.raises(BadInput):
            parse_conf([bad])


def test_only_analyses_here_are_split_in_two() -> None:
    assert settings_at(HERE, "127.0.0.1")["spark.default.parallelism"] == "2"
    assert "spark.default.parallelism" not in settings_at(parse_master("local[8]"), "127.0.0.1")


def test_a_cluster_that_loses_all_executors_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "executors", lambda spark: 0)
    monkeypatch.setattr(cluster, "EXECUTOR_TIMEOUT_S", 0.05)
    monkeypatch.setattr(cluster, "_LOOK_S", 0.01)
    given_up = threading.Event()
    spark: Any = None
    with (
        pytest.raises(RoveError, match="has had no executor for 0 s: start its workers again"),
        cluster.executors_watched(spark, parse_master("spark://head:7077"), given_up.set),
    ):
        assert given_up.wait(10.0)
        raise ConnectionResetError("the JVM was killed")


def test_errors_of_a_cluster_that_has_executors_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "executors", lambda spark: 1)
    spark: Any = None
    with (
        pytest.raises(ValueError, match="bad query"),
        cluster.executors_watched(spark, parse_master("spark://head:7077"), pytest.fail),
    ):
        raise ValueError("bad query")
