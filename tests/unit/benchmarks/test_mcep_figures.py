"""What the figures of moving queries are measured by, on a few vehicles without SUMO."""

from dataclasses import replace

import pytest

from benchmarks.mcep.crowd import Crowd, Crowds
from benchmarks.mcep.figure_files import Figure, changed, figure
from benchmarks.mcep.predicting import predicted
from benchmarks.mcep.reconfiguring import points, predeployed
from benchmarks.mcep_figures import VARIANTS
from node_agent.apps.mcep.geometry import Box
from node_agent.apps.mcep.interest import QualityAware, Timed
from node_agent.apps.mcep.model import Quality
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
    def of(self, figure: Figure) -> Crowd:
        return few(40.0)

    def drivers(self, given: Crowd) -> list[str]:
        return ["car"]


def test_predeployed_squares_are_counted_where_events_are() -> None:
    given = few(2.0)
    event = next(each for each in given.readings if each.attributes["car"] == "s40")
    assert [predeployed([event], edge, 100.0, given) for edge in (90, 150, 350)] == [0, 4, 16]
    here = replace(given, area=Box(0, 0, 1000, 500))
    assert predeployed([event], 350, 100.0, here) == 2 * 2, "no squares with centres outside"


def test_a_prepared_graph_has_its_results_at_the_switch() -> None:
    crowds, file = Few(40.0, 1), figure("3.12")
    asking = file.asking()
    ahead = Prediction(least=Quality(0.5, 0.5), ahead=2.0)
    reactive = predicted(file, crowds, asking, None)
    prepared = predicted(file, crowds, asking, ahead)
    assert reactive["precision"] == 1.0 and reactive["first_s"] > 0.3
    assert prepared["prepared"] == 1.0 and prepared["first_s"] < 0.1 and prepared["precision"] > 0.9


def test_streams_that_begin_with_less_history_lose_results_only() -> None:
    asking = figure("3.10").asking(parameters__readings=15)
    basic, average, none = (points(few(31.0), "car", asking, way) for way in ("basic", "avg", "none"))
    assert average.results <= basic.results and none.results < average.results
    assert 0 == none.historical < average.historical < basic.historical


@pytest.mark.timeout(120)
def test_files_say_what_is_asked_and_what_is_varied() -> None:
    file = figure("3.9")
    assert list(file.swept("edge").values()) == ["250 m", "500 m"]
    switches = file.swept("switch")
    assert file.asking(switch=switches["time, 5 s"]).condition == Timed(4.5)
    assert file.asking(switch=switches["quality 0.9"]).condition == QualityAware(Quality(0.9, 0.01), 5.0)
    assert file.asking(edge="250 m").edge == 250.0
    said = file.parameters()
    assert said["vehicles"] == 1000 and said["area_m"] == [7700.0, 3500.0]
    other = changed(figure("3.11"), history="0.5s", parameters__within=1.5)
    assert other.asking().history == 0.5 and figure("3.11").asking().history == 2.0
    assert changed(figure("3.12"), **VARIANTS["switch-3s"]).asking().condition == Timed(2.5)
    for number in ("3.8", "3.10", "3.12", "3.13"):
        assert figure(number).asking().edge == 500.0
