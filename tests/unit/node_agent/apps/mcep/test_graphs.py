"""Brokers that prepare graphs where the focal object will be, and share graphs between queries."""

from dataclasses import replace
from itertools import count, pairwise

import pytest

from benchmarks.mcep.worlds import World, world
from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.graphs import MOST_GRAPHS
from node_agent.apps.mcep.interest import Always, Condition, QualityAware, Timed
from node_agent.apps.mcep.messages import Located, Ordered, UpTo
from node_agent.apps.mcep.model import Event, McepError, Policy, Quality, Query
from node_agent.apps.mcep.prediction import Prediction
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.situations import graph_of
from node_agent.apps.mcep.switching import Hold
from orchestrator.apps.mcep.stage import Stage, driven
from tests.unit.node_agent.apps.mcep.test_roles import Town as RandomTown
from tests.unit.node_agent.apps.mcep.test_roles import check_results

pytestmark = pytest.mark.unit

AREA = Box(0, 0, 2000, 2000)
GRAPH = graph_of("average_speed", {"readings": 3, "within": 5.0})
UNTIL = 30.0
LOW = Quality(0.3, 0.3)


def worlds(number: int) -> list[World]:
    found: list[World] = []
    for seed in count(1):
        given = world(seed, suppression=False)
        strict = given.query.policy.is_strict and not isinstance(given.condition, QualityAware)
        contextual = any(each.reuse == "contextual" for each in given.query.graph.operators)
        if strict and given.points == "basic" and not contextual and len(given.events) < 250:
            found.append(given)
        if len(found) == number:
            break
    return found


def test_t36_predicted_queries_deliver_what_the_oracle_expects() -> None:
    """Whatever is predicted, and however late messages are: each epoch is complete and from one region."""
    ways: set[str] = set()
    for given in worlds(6):
        prediction = Prediction(
            1 + given.seed % 3, LOW, ahead=1.0, places=1 + 2 * (given.seed % 2), spread=90
        )
        town = RandomTown(given, 0, prediction)
        town.play()
        check_results(town)
        ways.update(town.brokers[town.home].how(given.query.name))
        assert not any(each.runs for each in town.brokers.values()), "graphs end with their query"
    assert ways >= {"began", "prepared"}


def straight(speed: float = 20.0, y: float = 1000.0, turn: float = UNTIL) -> Drive:
    """To the right, and back from ``turn`` on."""
    places = [(t, 500 + speed * (t if t <= turn else 2 * turn - t)) for t in range(int(UNTIL) + 1)]
    return Drive([Sample(t, x, y, speed) for t, x in places])


def square(place: Point) -> Box:
    return Box(place.x - 250, place.y - 250, place.x + 250, place.y + 250)


def cell(place: Point) -> Box:
    x, y = place.x // 200 * 200, place.y // 200 * 200
    return Box(x - 200, y - 200, x + 400, y + 400)


def standing(number: int) -> dict[str, Drive]:
    return {
        f"s{n}": Drive([Sample(0, 100 * n, 1000, n), Sample(UNTIL, 100 * n + 1, 1000, n)])
        for n in range(number)
    }


def deployed(name: str, who: str, region: object, policy: Policy, **changes: object) -> Deployed:
    query = Query(name, GRAPH, who, region, 4.0, policy)  # type: ignore[arg-type]
    return Deployed(query, {"averaging": "b1"}, "b1", **changes)  # type: ignore[arg-type]


def played(queries: list[Deployed], drives: dict[str, Drive], brokers: int = 1) -> Stage:
    everyone = {**drives, **standing(20)}
    areas = grid([f"b{number}" for number in range(1, brokers + 1)], AREA)
    deployment = Deployment(areas, tuple(everyone), tuple(queries), 40.0)
    check_deployment(deployment)
    stage = Stage(deployment)
    stage.play(driven(everyone, 1.0, UNTIL), UNTIL)
    return stage


def test_t20_a_graph_is_prepared_where_the_object_goes() -> None:
    """At the switch nothing has to be computed: the first results are there at once."""
    given = deployed(
        "q", "car", square, Policy(), condition=Timed(4.5), prediction=Prediction(least=LOW, ahead=2.0)
    )
    town = played([given], {"car": straight()})
    assert town.brokers["b1"].how("q") == ("began", *["prepared"] * 5)
    places = [marker.region for marker in town.brokers["b1"].markers("q")[1:-1]]
    for marker, region in zip(town.brokers["b1"].markers("q")[1:], places, strict=False):
        expected = straight().at(marker.t)
        assert isinstance(region, Box) and abs((region.x0 + region.x1) / 2 - expected.x) < 20 * 2.5


def test_a_client_that_speaks_of_a_far_time_does_not_spoil_what_is_prepared_for_others() -> None:
    """It is believed about itself; graphs still begin before their switch, and the query comes to its end."""
    given = deployed(
        "q", "car", square, Policy(), condition=Timed(4.5), prediction=Prediction(least=LOW, ahead=2.0)
    )
    everyone = {"car": straight(), **standing(20)}
    deployment = Deployment(grid(["b1", "b2"], AREA), tuple(everyone), (given,), 40.0)
    stage = Stage(deployment)
    for broker in stage.brokers.values():
        broker.receive("s3", UpTo(29 * 86400.0))
    stage.play(driven(everyone, 1.0, UNTIL), UNTIL)
    home = stage.brokers["b1"]
    assert home.how("q") == ("began", *["prepared"] * 5)
    assert all(marker.t <= UNTIL for marker in home.markers("q"))
    assert len(stage.clients["car"].results) > 50
    assert not any(each.runs for each in stage.brokers.values())


@pytest.mark.parametrize("completeness", ["weak", "best_effort"])
def test_t20_a_graph_for_another_place_is_not_used(completeness: str) -> None:
    """It turns just after the graph began: quality is too low, and the switch is a reactive one."""
    policy = Policy(completeness=completeness)  # type: ignore[arg-type]
    prediction = Prediction(least=Quality(0.9, 0.9), ahead=4.0)
    given = deployed("q", "car", square, policy, condition=Timed(9.5), prediction=prediction)
    town = played([given], {"car": straight(30.0, turn=7.0)})
    assert town.brokers["b1"].how("q") == ("began", "began", "prepared")


def test_timeliness_and_several_interests_within_a_budget() -> None:
    """5 ms for an event: with 3 events a second in sight and 9 s of history a graph begins 0.14 s ahead."""
    prediction = Prediction(least=LOW, places=9, spread=400, budget=12.0, preference="greedy")
    given = deployed("q", "car", square, Policy(), condition=Timed(4.5), prediction=prediction)
    town = played([given], {"car": straight()})
    assert set(town.brokers["b1"].how("q")[1:]) == {"prepared"}
    known = tuple((Point(500 + 20 * t, 1000.0), float(t)) for t in range(31))
    route = Prediction(least=Quality(0.9, 0.9), ahead=2.0, route=known, eagerness=3)
    given = replace(given, prediction=route)
    assert set(played([given], {"car": straight(turn=29.0)}, 4).brokers["b1"].how("q")[1:]) == {"prepared"}


def test_t04_queries_that_share_graphs_get_the_same() -> None:
    """Two cars, one behind the other, pass the same regions at other times."""
    strong = Policy(completeness="strong")
    queries = [deployed(f"q{n}", f"car{n}", cell, strong, asks="speed") for n in (1, 2)]
    town = played(queries, {"car1": straight(), "car2": straight(18.0)}, brokers=3)
    ways = [*town.brokers["b1"].how("q1"), *town.brokers["b1"].how("q2")]
    assert ways.count("shared") > ways.count("began") > 2
    spans: dict[str, list[tuple[float, float, object, list[Event]]]] = {}
    for name, client in (("q1", "car1"), ("q2", "car2")):
        markers = town.brokers["b1"].markers(name)
        assert [each.epoch for _, each in town.clients[client].results] == sorted(
            each.epoch for _, each in town.clients[client].results
        )
        for marker, following in pairwise(markers):
            own = [e.event for _, e in town.clients[client].results if e.epoch == marker.epoch]
            spans.setdefault(name, []).append((marker.t - 4.0, following.t, marker.region, own))
    compared = 0
    for since, until, region, mine in spans["q1"]:
        for start, end, other, others in spans["q2"]:
            low, high = max(since, start), min(until, end)
            if region == other and low < high:
                one, two = ([e.attributes for e in each if low <= e.t < high] for each in (mine, others))
                assert one == two
                compared += len(one)
    assert compared > 100
    assert not any(each.runs for each in town.brokers.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prediction": Prediction(0)}, "an eagerness of 1 to 16, not 0"),
        ({"prediction": Prediction(places=0)}, "1 to 100 places"),
        ({"prediction": Prediction(ahead=-1.0)}, "of 0 or more"),
        ({"prediction": Prediction(route=((Point(0, 0), 1.0), (Point(0, 0), 1.0)))}, "route must grow"),
        ({"prediction": Prediction(least=Quality(2, 0))}, "between 0 and 1"),
        ({"prediction": Prediction()}, "say how many seconds ahead"),
        ({"asks": "speed"}, "only queries with strong completeness share"),
        ({"prediction": Prediction(ahead=1.0), "policy": Policy(suppression=True)}, "suppression is for one"),
        ({"prediction": Prediction(ahead=1.0), "name": "a/1"}, "needs a name without /"),
    ],
)
def test_bad_predictions(change: dict[str, object], message: str) -> None:
    policy, name = change.pop("policy", Policy()), change.pop("name", "q")
    given = deployed(str(name), "car", square, policy, **change)  # type: ignore[arg-type]
    with pytest.raises(McepError, match=message):
        check_deployment(Deployment(grid(["b1", "b2"], AREA), ("car",), (given,), 40.0))
    strong = Policy(completeness="strong")
    one, two = (deployed(each, "car", square, strong, asks="speed") for each in ("q1", "q2"))
    other = replace(two, query=replace(two.query, graph=graph_of("average_speed", {})))
    with pytest.raises(McepError, match="both ask for speed"):
        check_deployment(Deployment(grid(["b1"], AREA), ("car",), (one, other), 40.0))


def test_only_the_home_makes_graphs_and_not_too_many() -> None:
    condition: Condition = Always()
    given = deployed("q", "car", square, Policy(), condition=condition, prediction=Prediction(ahead=1.0))
    broker = Broker("b2", Deployment(grid(["b1", "b2"], AREA), ("car",), (given,), 40.0))
    for name in ("q", "q/0", "q/x", "other/1"):
        broker.receive("b1", Ordered(name, Hold(1)))
    broker.receive("car", Ordered("q/1", Hold(1)))
    assert broker.refused == 5 and broker.runs == ()
    for number in range(1, 2 * MOST_GRAPHS + 3):
        broker.receive("b1", Ordered(f"q/{number}", Hold(1)))
    assert len(broker.runs) == 2 * MOST_GRAPHS and broker.refused == 7
    home = Broker("b1", Deployment(grid(["b1"], AREA), ("car",), (given,), 40.0))
    for number in range(2 * MOST_GRAPHS):  # nobody says that time goes on, so no graph ends
        home.receive("car", Located("q", Point(10.0 * number, 0.0), float(number)))
    assert len(home.runs) <= MOST_GRAPHS and home.refused > 0
    before = len(home.markers("q"))
    home.receive("car", UpTo(1000.0))
    home.tick()
    assert len(home.markers("q")) > before, "it goes on once graphs have ended"
