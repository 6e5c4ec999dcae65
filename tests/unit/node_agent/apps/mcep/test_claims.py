"""What nodes may say to each other: each about itself and its own part only."""

from dataclasses import replace
from math import inf, nan

import pytest
from msgspec.structs import replace as replace_config

from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Marker
from node_agent.apps.mcep.claims import Claims
from node_agent.apps.mcep.config import QueryConfig, deployed
from node_agent.apps.mcep.deployment import Deployment
from node_agent.apps.mcep.geometry import Box, Circle, Point
from node_agent.apps.mcep.messages import (
    Answered,
    Known,
    Located,
    Ordered,
    Placed,
    Results,
    Said,
    Seen,
    Streamed,
    UpTo,
)
from node_agent.apps.mcep.model import Event, Shared, Value, atomic
from node_agent.apps.mcep.reuse.deployed import Managed, Reuse
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.reuse.offers import Covered, Offer, Offered
from node_agent.apps.mcep.reuse.results import Results as SharedResults
from node_agent.apps.mcep.reuse.results import Share
from node_agent.apps.mcep.switching import Held, Hold, Switch

pytestmark = pytest.mark.unit

QUERY = QueryConfig("near", "average_speed", "car1", 100.0, "b1", {"averaging": "b2"})
DEPLOYMENT = Deployment(
    grid(["b1", "b2", "b3"], Box(0, 0, 300, 100)), ("car1", "car2"), (deployed(QUERY),), 60
)
HERE = Point(1, 1)
POINTS = {"speed": 0.0, "averaging": 0.0}
MARKER = Marker(5.0, 1, None, POINTS, frozenset({"speed"}))
BEAT = Heartbeat(1.0)
FAST = atomic("speed", 1.0, HERE, 0, "car2", {"speed": -inf})
MANY: dict[str, Value] = {str(number): number for number in range(40)}


REUSE = Reuse(Settings(), (Managed("mean", "b3", ("near/averaging", "also/averaging")),))
SHARING = replace(
    DEPLOYMENT,
    queries=(deployed(QUERY), deployed(replace_config(QUERY, name="also", home="b2"))),
    reuse=REUSE,
)
FOUND = Event(1.0, 0, "near/averaging", "average", HERE, {"speed": 3.0}, 0, 7, frozenset({("car2", 0)}))
OFFERED = Offered("near/averaging", 1, 0.0, Circle(1, 1, 50), (atomic("speed", 1.0, HERE, 0, "car2"),))
COVERED = Covered("mean", SharedResults((FOUND,), (Share("near/averaging", 7), Share("also/averaging", 3))))
LATE = (Offer(1e9, (("readings", (0,)),)),)


@pytest.mark.parametrize(
    ("receiver", "sender", "said", "word"),
    [
        ("b3", "b2", OFFERED, None),
        ("b3", "b2", OFFERED._replace(upto=inf), None),
        ("b3", "b1", OFFERED, "sender"),
        ("b3", "car1", OFFERED, "sender"),
        ("b1", "b2", OFFERED, "operator"),
        ("b3", "b2", OFFERED._replace(operator="near/other"), "operator"),
        ("b3", "b2", OFFERED._replace(region=Circle(0, 0, 1e300)), "region"),
        ("b3", "b2", OFFERED._replace(since=1e9), "time"),
        ("b3", "b2", OFFERED._replace(upto=1e9), "time"),
        ("b3", "b2", OFFERED._replace(epoch=0), "time"),
        ("b3", "b2", OFFERED._replace(selections=LATE), "time"),
        ("b3", "b2", OFFERED._replace(fresh=(FAST,)), "attributes"),
        ("b3", "b2", OFFERED._replace(fresh=(FOUND._replace(place=Point(1e9, 0)),)), "place"),
        ("b2", "b3", COVERED, None),
        ("b2", "b1", COVERED, "sender"),
        ("b2", "b3", COVERED._replace(manager="another"), "sender"),
        ("b1", "b3", COVERED, "operator"),
        ("b2", "b3", COVERED._replace(results=SharedResults(empty=(("near/other", 1),))), "operator"),
        ("b2", "b3", COVERED._replace(results=SharedResults((FOUND._replace(source="x"),))), "event"),
        ("b2", "b3", COVERED._replace(results=SharedResults((FOUND._replace(t=1e9),))), "time"),
        ("car1", "b3", COVERED, "message"),
    ],
)
def test_brokers_speak_of_their_own_selections(
    receiver: str, sender: str, said: Said, word: str | None
) -> None:
    """An operator's broker offers its selections, and its manager's broker answers: nobody else."""
    assert Claims(receiver, SHARING).refusal(sender, said) == word
    if receiver != "car1":
        assert Claims(receiver, DEPLOYMENT).refusal(sender, said) in ("operator", "sender")


def test_only_shared_selections_make_shared_events() -> None:
    shared = FOUND._replace(shared=Shared(("near/averaging", 7, 1.0, 0)))
    said = Streamed("near", "consumer", ChannelId("averaging"), shared)
    assert Claims("b1", SHARING).refusal("b2", said) is None
    assert Claims("b1", DEPLOYMENT).refusal("b2", said) == "event"
    seen = Seen((atomic("speed", 1.0, HERE, 0, "car2")._replace(shared=shared.shared),))
    assert Claims("b1", SHARING).refusal("car2", seen) == "event"


def of_source(origin: str, successor: str = "averaging") -> Streamed:
    return Streamed("near", successor, ChannelId("speed", origin), BEAT)


@pytest.mark.parametrize(
    ("receiver", "sender", "said"),
    [
        ("b1", "car2", Seen((atomic("speed", 1.0, HERE, 0, "car2"),))),
        ("b1", "car2", UpTo(1.0)),
        ("b1", "car2", UpTo(inf)),
        ("b1", "b3", Answered("near", Held(1, -inf))),
        ("b1", "b2", Known((("car1", 1.0),))),
        ("b1", "car1", Located("near", HERE, 1.0)),
        ("b3", "b1", Ordered("near", Hold(1))),
        ("b3", "b1", Ordered("near", Switch(MARKER))),
        ("b1", "b3", Answered("near", Held(1, 2.0))),
        ("b2", "b3", of_source("b3")),
        ("b1", "b2", Streamed("near", "consumer", ChannelId("averaging"), MARKER)),
        ("car1", "b1", Placed("near", 1.0)),
        ("car1", "b1", Results("near", ())),
    ],
)
def test_what_belongs_to_a_node_is_believed(receiver: str, sender: str, said: Said) -> None:
    assert Claims(receiver, DEPLOYMENT).refusal(sender, said) is None


@pytest.mark.parametrize(
    ("receiver", "sender", "said", "word"),
    [
        ("b1", "car2", Seen((atomic("speed", 1.0, HERE, 0, "car1"),)), "event"),
        ("b1", "car2", Seen((atomic("noise", 1.0, HERE, 0, "car2"),)), "type"),
        ("b1", "car2", Seen((atomic("speed", -1.0, HERE, 0, "car2"),)), "place"),
        ("b1", "car2", Seen((atomic("speed", 1.0, HERE, 0, "car2", {"speed": 1e300}),)), "attributes"),
        ("b1", "car2", Seen((atomic("speed", 1.0, HERE, 0, "car2", {"speed": nan}),)), "attributes"),
        ("b1", "car2", Seen((atomic("speed", 1.0, HERE, 0, "car2", {"a": "x" * 5000}),)), "attributes"),
        ("b1", "car2", Seen((atomic("speed", 1.0, HERE, 0, "car2", MANY),)), "attributes"),
        ("b1", "car2", UpTo(1e9), "time"),
        ("b1", "b2", Known((("car1", 1e9),)), "time"),
        ("b1", "b3", Answered("near", Held(1, inf)), "time"),
        ("b2", "b3", of_source("b3")._replace(message=Heartbeat(1e9)), "time"),
        ("b2", "b3", of_source("b3")._replace(message=FAST), "attributes"),
        ("b3", "b1", Ordered("near", Switch(MARKER._replace(region=Circle(0, 0, 1e308)))), "marker"),
        ("b1", "b2", Seen(()), "sender"),
        ("b1", "b2", UpTo(1.0), "sender"),
        ("b1", "car1", Known(()), "sender"),
        ("b1", "b2", Known((("stranger", 1.0),)), "client"),
        ("b1", "car2", Located("near", HERE, 1.0), "sender"),
        ("b2", "car1", Located("near", HERE, 1.0), "sender"),
        ("b1", "car1", Located("far", HERE, 1.0), "query"),
        ("b3", "b2", Ordered("near", Hold(1)), "sender"),
        ("b3", "b1", Ordered("near", Switch(MARKER._replace(points={}))), "marker"),
        ("b3", "b1", Ordered("near", Switch(MARKER._replace(touched=frozenset({"x"})))), "marker"),
        ("b2", "b3", Answered("near", Held(1, 2.0)), "sender"),
        ("b2", "b3", of_source("b1"), "sender"),
        ("b2", "b3", of_source(""), "sender"),
        ("b1", "b3", of_source("b3"), "stream"),
        ("b2", "b3", of_source("b3", "consumer"), "stream"),
        ("b1", "b3", Streamed("near", "consumer", ChannelId("averaging"), BEAT), "sender"),
        ("b1", "b1", Placed("near", 1.0), "message"),
        ("car1", "b2", Placed("near", 1.0), "sender"),
        ("car2", "b1", Results("near", ()), "sender"),
        ("car1", "b1", UpTo(1.0), "message"),
    ],
)
def test_all_else_is_refused(receiver: str, sender: str, said: Said, word: str) -> None:
    assert Claims(receiver, DEPLOYMENT).refusal(sender, said) == word


def test_clients_let_in_only_homes() -> None:
    assert Claims("car1", DEPLOYMENT).may_connect("b1") and Claims("b2", DEPLOYMENT).may_connect("car2")
    refused = [("car1", "b2"), ("car2", "b1"), ("b1", "stranger")]
    assert not any(Claims(receiver, DEPLOYMENT).may_connect(node) for receiver, node in refused)
