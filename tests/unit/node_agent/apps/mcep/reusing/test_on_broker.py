"""A broker with selection managers and operators that share, and what a hostile peer can do to it."""

import pytest

from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.geometry import Box, Point, squares
from node_agent.apps.mcep.model import Event, McepError, Policy, Query
from node_agent.apps.mcep.reuse.deployed import Managed, Reuse
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.reuse.offers import Covered, Offered
from node_agent.apps.mcep.reuse.results import Results, Share
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.situations import graph_of
from orchestrator.apps.mcep.stage import Stage, driven

pytestmark = pytest.mark.unit

AREA = Box(0, 0, 2000, 2000)
UNTIL = 20.0
GRAPH = graph_of("average_speed", {"readings": 3, "within": 5.0})
FOUND = Event(1.0, 0, "a/averaging", "average", Point(1, 1), {}, 0, 0, frozenset({("s1", 0)}))


STRICT, HURRIED = Policy(), Policy(completeness="best_effort")


def deployment(policy: Policy = STRICT, **changes: object) -> Deployment:
    """Two queries on two brokers, and their manager on the first."""
    region = squares(1500.0)
    queries = tuple(
        Deployed(Query(name, GRAPH, f"s{n}", region, 4.0, policy), {"averaging": f"b{n}"}, f"b{n}")
        for n, name in enumerate(("a", "b"), 1)
    )
    reuse = Reuse(Settings(), (Managed("mean", "b1", ("a/averaging", "b/averaging")),))
    fields = {"reuse": reuse, **changes}
    found = Deployment(grid(["b1", "b2"], AREA), ("s1", "s2", "s3"), queries, 40.0, **fields)  # type: ignore[arg-type]
    check_deployment(found)
    return found


def drives() -> dict[str, Drive]:
    return {
        f"s{n}": Drive([Sample(0, 400.0 * n, 1000, n), Sample(UNTIL, 400.0 * n + 100, 1000, n)])
        for n in (1, 2, 3)
    }


@pytest.mark.parametrize("policy", [STRICT, HURRIED])
def test_results_come_to_both_and_one_of_two_selections_is_processed(policy: Policy) -> None:
    stage = Stage(deployment(policy))
    stage.play(driven(drives(), 1.0, UNTIL), UNTIL)
    work = stage.brokers["b1"].managers["mean"].work
    assert work.offered > 50 and work.processed < 0.6 * work.offered
    assert not stage.brokers["b2"].managers and stage.sent["Offered"] < stage.sent["Streamed"] / 2
    assert all(each.done().waiting == each.refused == 0 for each in stage.brokers.values())
    for name in ("s1", "s2"):
        results = [each.event for _, each in stage.clients[name].results]
        assert len(results) > 25 and all(each.shared is not None for each in results)
        makers = {each.shared.origin[0] for each in results if each.shared}
        assert makers <= {"a/averaging", "b/averaging"}


@pytest.mark.parametrize(
    "results",
    [
        Results((FOUND,), (Share("b/averaging", 0),)),
        Results((), (), {}, (("b/averaging", 9_000),)),
        Results((FOUND,), (Share("a/averaging", 0),)),
    ],
)
def test_results_of_selections_that_were_never_made_are_refused(results: Results) -> None:
    """A manager cannot fill a broker's memory with results to come, or make an operator skip selections."""
    broker = Broker("b2", deployment())
    with pytest.raises(McepError, match="has not made selection"):
        broker.receive("b1", Covered("mean", results))
    assert broker.done().waiting == 0


def test_a_broker_without_reuse_takes_no_offers() -> None:
    broker = Broker("b1", deployment(reuse=None))
    assert broker.receive("b2", Offered("a/averaging", 1, 0.0, AREA)) == [] and broker.refused == 1
    assert broker.receive("b2", Covered("mean", Results())) == [] and broker.refused == 2


@pytest.mark.parametrize(
    ("managers", "words"),
    [
        ((Managed("m", "b3", ("a/averaging",)),), "b3 is no broker"),
        ((Managed("m", "b1", ("c/averaging",)),), "there is no operator c/averaging"),
        ((Managed("m", "b1", ("a/averaging",)), Managed("m", "b1", ())), "manager m is there twice"),
        (
            (Managed("m", "b1", ("a/averaging",)), Managed("n", "b1", ("a/averaging",))),
            "operator a/averaging is there twice",
        ),
    ],
)
def test_managers_that_cannot_be(managers: tuple[Managed, ...], words: str) -> None:
    with pytest.raises(McepError, match=words):
        deployment(reuse=Reuse(Settings(), managers))


def test_queries_that_cannot_share() -> None:
    with pytest.raises(McepError, match="query a: suppression finds its own old results"):
        deployment(Policy(suppression=True))
    with pytest.raises(McepError, match="query a: it asks for strong completeness"):
        deployment(Policy(completeness="strong"))
