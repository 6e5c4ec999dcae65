"""Clients that give two events the same time and number: to one broker, and to two of them."""

import pytest

from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.geometry import Box, Point, circles
from node_agent.apps.mcep.messages import Seen
from node_agent.apps.mcep.model import FAR_S, Policy, Query, atomic
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.range_query import RangeQuery
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.situations import graph_of
from node_agent.apps.mcep.storage import Storage
from orchestrator.apps.mcep.stage import Stage, driven

pytestmark = pytest.mark.unit

AREA = Box(0, 0, 1000, 1000)
UNTIL = 20.0
PLACES = {"b1": Point(100, 500), "b2": Point(900, 500)}


def deployment(suppression: bool = False) -> Deployment:
    graph = graph_of("moving_speed", {"readings": 3, "within": 5.0, "above": 1.0})
    query = Query("q", graph, "car", circles(600.0), 4.0, Policy(suppression=suppression))
    hosts = {"fast": "b1", "averaging": "b2"}
    areas = grid(["b1", "b2"], AREA)
    found = Deployment(areas, ("car", "other", "liar"), (Deployed(query, hosts, "b1"),), 40.0)
    check_deployment(found)
    return found


def town(suppression: bool = False) -> tuple[Stage, dict[str, Drive]]:
    moving = Drive([Sample(0, 300, 500, 20), Sample(UNTIL, 700, 500, 20)])
    standing = Drive([Sample(0, 500, 400, 7), Sample(UNTIL, 501, 400, 7)])
    return Stage(deployment(suppression)), {"car": moving, "other": standing, "liar": standing}


@pytest.mark.parametrize("suppression", [False, True])
@pytest.mark.parametrize("brokers", [["b1", "b1"], ["b1", "b2"], ["b2", "b1", "b2"]])
def test_events_that_cannot_be_ordered_break_nothing(brokers: list[str], suppression: bool) -> None:
    """A broker counts the first, an operator that of the first broker; all others are served as ever."""
    stage, drives = town(suppression)
    for place, broker in enumerate(brokers):
        event = atomic("speed", 3.0, PLACES[broker], 10_000, "liar", {"speed": 40.0 + place})
        stage.brokers[broker].receive("liar", Seen((event,)))
    readings = driven(drives, 1.0, UNTIL)
    stage.play({**readings, "liar": [each.silenced() for each in readings["liar"]]}, UNTIL)
    plain, _ = town(suppression)
    first = min(brokers)
    event = atomic("speed", 3.0, PLACES[first], 10_000, "liar", {"speed": 40.0 + brokers.index(first)})
    plain.brokers[first].receive("liar", Seen((event,)))
    plain.play({**readings, "liar": [each.silenced() for each in readings["liar"]]}, UNTIL)
    heard, wanted = ([each for _, each in one.clients["car"].results] for one in (stage, plain))
    assert len(heard) > 20 and heard == wanted
    assert any(("liar", 10_000) in each.event.provenance for each in heard)


def test_a_broker_keeps_each_number_of_a_client_once() -> None:
    broker = Broker("b1", deployment())
    for number, t in ((0, 1.0), (0, 2.0), (2, 2.0), (1, 3.0), (3, 3.0)):
        broker.receive("liar", Seen((atomic("speed", t, PLACES["b1"], number, "liar"),)))
    assert broker.stored == 3 and broker.refused == 2


def test_a_stream_that_begins_when_all_have_gone_begins_at_a_time_that_can_be_told() -> None:
    graph = graph_of("average_speed", {})
    ranges = RangeQuery(graph.sources[0], Storage(10.0), 5.0)
    ranges.progress(GONE)
    assert ranges.hold() == FAR_S
