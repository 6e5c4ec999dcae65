"""What the figures of moving queries are measured by, on a few vehicles without SUMO."""

from dataclasses import replace

import pytest

from benchmarks.mcep.crowd import Crowd, Crowds
from benchmarks.mcep.predicting import predicted
from benchmarks.mcep.reconfiguring import points, predeployed
from node_agent.apps.mcep.geometry import Box
from node_agent.apps.mcep.model import Policy, Quality
from node_agent.apps.mcep.prediction import Prediction
from node_agent.apps.mcep.sensing import Drive, Sample

pytestmark = pytest.mark.unit


def few(seconds: float) -> Crowd:
    """One drives at 20 m/s through others that stand, 25 m apart."""
    end = seconds + 40
    drives = {"car": Drive([Sample(0, 600, 500, 20.0), Sample(end, 600 + 20 * end, 500, 20.0)])}
    for n in range(100):
        drives[f"s{n}"] = Drive([Sample(0, 25.0 * n, 505, 9.0), Sample(end, 25.0 * n, 505, 9.0)])
    return Crowd(drives, Box(0, 0, 3000, 1000), seconds)


class Few(Crowds):
    dense = few(40.0)

    def drivers(self, given: Crowd) -> list[str]:
        return ["car"]


def test_predeployed_squares_are_counted_where_events_are() -> None:
    given = few(2.0)
    event = next(each for each in given.readings if each.attributes["car"] == "s40")
    assert [predeployed([event], edge, 100.0, given) for edge in (90, 150, 350)] == [0, 4, 16]
    here = replace(given, area=Box(0, 0, 1000, 500))
    assert predeployed([event], 350, 100.0, here) == 2 * 2, "no squares with centres outside"


def test_a_prepared_graph_has_its_results_at_the_switch() -> None:
    crowds = Few(40.0, 1)
    ahead = Prediction(least=Quality(0.5, 0.5), ahead=2.0)
    reactive = predicted(crowds, 500.0, Policy(), None)
    prepared = predicted(crowds, 500.0, Policy(), ahead)
    assert reactive["precision"] == 1.0 and reactive["first_s"] > 0.3
    assert prepared["prepared"] == 1.0 and prepared["first_s"] < 0.1 and prepared["precision"] > 0.9


def test_streams_that_begin_with_less_history_lose_results_only() -> None:
    basic, average, none = (points(few(31.0), "car", 15, way) for way in ("basic", "avg", "none"))
    assert average.results <= basic.results and none.results < average.results
    assert 0 == none.historical < average.historical < basic.historical
