"""Which lines of several applications fit together, and whose word they can be."""

from typing import Any

import msgspec
import pytest
from msgspec import Struct

from node_agent.apps.dataflow.belief import scopes_of
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.records import record_format
from node_agent.apps.registry import APPLICATIONS
from node_agent.extensions import ExtensionError
from node_agent.model.checked import Refused
from node_agent.model.telemetry import Event
from node_agent.telemetry.belief import AppScopes, Writer
from node_agent.telemetry.kinds import RecordKinds, Rule
from node_agent.telemetry.records import RecordFormat


class Ping(Event, tag="ping", frozen=True):
    target: str
    number: int
    delays: tuple[int, ...] = ()


class Same(Event, tag="queue", frozen=True):
    """A kind that the dataflow has."""


class Twisted(Event, tag="twisted", frozen=True):
    """A field that is a number elsewhere."""

    size: str


class Hiding(Event, tag="hiding", frozen=True):
    node: str


PINGS = RecordKinds(
    (Ping,),
    bounds={"number": (1, 99), "delays": (0, 10)},
    counted={"delays": "number"},
    subject="target",
    rules=(Rule("number", ("ping",), "number", "numbers"),),
    words={"target": "name a target that was not asked for"},
)
QUERY_RECORDS = APPLICATIONS["query"].records
FORMAT = RecordFormat({"query": QUERY_RECORDS, "pings": PINGS})
PLAN = DeploymentPlan(
    Query("q", (OperatorSpec("camera", "synthetic_source"), OperatorSpec("screen", "sink", ("camera",)))),
    (Replica("camera", 0, "n1"), Replica("screen", 0, "n2")),
)


class Numbers(Struct, frozen=True):
    numbers: tuple[int, ...]


APPS = {
    "faces": scopes_of(PLAN),
    "pings": AppScopes("pings", {"n1": {"a": Numbers((1, 2))}}),
}


def line(kind: str, **fields: Any) -> bytes:
    envelope = {"run": "run", "node": "n1", "boot": 1, "seq": 0, "t_ns": 5, "kind": kind}
    return msgspec.json.encode({**envelope, **fields})


def judged(kind: str, **fields: Any) -> str:
    """Why it is corrupt or refused; empty if it counts."""
    try:
        record = FORMAT.decode(line(kind, **fields))
    except Refused as error:
        return error.reason
    return FORMAT.flaw(record) or Writer("run", "n1", FORMAT, APPS).refusal(record)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"number": 2, "delays": [1, 10]}, ""),
        ({"number": 0}, "malformed"),
        ({"number": 2, "delays": [1, 11]}, "malformed"),
        ({"number": 2, "delays": [1]}, "extent"),
        ({"number": None}, "incomplete"),
        ({"tau": 1}, "field"),
        ({"number": 3}, "number"),
        ({"target": "b"}, "target"),
        ({"app": "faces"}, "app"),
        ({"app": "other"}, "app"),
        ({"app": ""}, "app"),
        ({"node": "n2"}, "node"),
    ],
)
def test_records_are_held_against_what_their_application_says(fields: dict[str, Any], reason: str) -> None:
    assert judged("ping", **{"app": "pings", "target": "a", "number": 1, **fields}) == reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"heard": [[3, 1, 500, 0, -5, 0, 0, 0, 5, 1, 6, 2]], "arrived": [[3, 1, 500]]}, ""),
        ({"heard": [[]]}, "row"),
        ({"heard": [[3, 1, 500, 0, 0, 0, 0]]}, "row"),
        ({"heard": [[3, 1, 500, 0, 0, 0, 0, 0, 5]]}, "row"),
        ({"heard": [[3, 1, 500, 0, 0, 0, 0, 0, 2048, 1]]}, "row"),
        ({"heard": [[3, 1, 500, 0, 0, 0, 0, 0, 5, 0]]}, "row"),
        ({"heard": [[3, 1, 500, 0, 0, 0, 0, 0, *[5, 1] * 4000]]}, "row"),
        ({"arrived": [[3, 1, 500], [4, 1]]}, "row"),
        ({"arrived": [[3, 1, 500, 1]]}, "row"),
        ({"arrived": [[3, 1, 2**62]]}, "row"),
        ({"arrived": [[3, 1, 2**70]]}, "row"),
        ({"arrived": [[3, 1, None]]}, "malformed"),
    ],
)
def test_rows_have_lengths_and_bounds(fields: dict[str, Any], reason: str) -> None:
    format = RecordFormat({"flows": APPLICATIONS["flows"].records})
    counters = ("source_boot", "opened_ns", "now_ns", "packets", "bytes", "duplicates", "reordered", "late")
    record = {"flow": "f", "heard": [], "arrived": [], **dict.fromkeys(counters, 1), **fields}
    try:
        assert format.flaw(format.decode(line("flow_received", app="load", **record))) == reason
    except Refused as error:
        assert error.reason == reason


def test_a_replica_is_that_of_its_application() -> None:
    sample = {"replica": "camera/0", "queue": "out", "length": 1}
    assert judged("queue", app="faces", **sample) == ""
    assert judged("queue", app="faces", **{**sample, "replica": "screen/0"}) == "replica"
    assert judged("queue", app="pings", **sample) == "app"


def test_the_agents_records_may_name_an_application_of_the_run() -> None:
    assert judged("agent_stop", reason="done") == ""
    assert judged("agent_stop", reason="done", app="pings") == ""
    assert judged("agent_stop", reason="done", app="other") == "app"


def test_kinds_that_nobody_knows_are_believed_of_an_application_of_the_run() -> None:
    assert judged("new", app="faces", what_else=1) == ""
    assert judged("new", app="faces", replica="screen/0") == "replica"
    assert judged("new", app="other") == "app"


def test_records_that_name_no_application_are_of_the_query() -> None:
    record = record_format().decode(line("queue", replica="camera/0", queue="out", length=1))
    old = {"query": scopes_of(PLAN)}
    assert record.app == ""
    assert Writer("run", "n1", record_format(), old).refusal(record) == ""
    assert Writer("run", "n2", record_format(), old).refusal(record) == "node"
    assert Writer("run", "n1", record_format(), {"faces": scopes_of(PLAN)}).refusal(record) == "app"


def test_every_reason_has_words() -> None:
    reasons = {rule.reason for rule in QUERY_RECORDS.rules} | {QUERY_RECORDS.subject, "run", "node", "app"}
    assert reasons <= record_format().words.keys()


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (RecordKinds((Same,)), "query and mine both record 'queue'"),
        (RecordKinds((Twisted,)), "the field 'size' of 'twisted' has another type in other records"),
        (
            RecordKinds((Hiding,)),
            "the field 'node' of 'hiding' has the name of a field",
        ),
        (RecordKinds((), {"size": (0, 7)}), "'mine' has other bounds for 'size' than others"),
    ],
)
def test_applications_whose_records_cannot_be_told_apart_are_refused(
    records: RecordKinds, message: str
) -> None:
    with pytest.raises(ExtensionError, match=message):
        RecordFormat({"query": QUERY_RECORDS, "mine": records})
