"""Video queries end to end: in one process, and on agents in virtual and in real time, with real faces."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.agent.agent import Agent
from node_agent.agent.config import BadConfig
from node_agent.apps.dataflow import testing
from node_agent.apps.dataflow.best_effort.dispatcher import Limits
from node_agent.apps.dataflow.faces.events import FacesSeen
from node_agent.apps.dataflow.faces.frames import UNKNOWN, Frame, encode_frame
from node_agent.apps.dataflow.faces.heat import decode_heat
from node_agent.apps.dataflow.faces.pixels import decode_image, encode_jpeg
from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.model.query_problems import query_problems
from node_agent.apps.dataflow.operators.registry import OPERATORS, QUERIES
from node_agent.telemetry.segment_log import SegmentLog
from tests.unit.networks import LoopbackNetwork, RadioNetwork
from tests.unit.node_agent.agent.test_agent import (
    ALONE,
    TWICE,
    RadioTestbed,
    Testbed,
    nodes_of,
    on_loopback,
    plan,
    run,
    until,
)
from tests.unit.query_agents import query_agent

SMALL: dict[str, Any] = {"seed": 11, "persons": 6, "enrolled": 2}
SCENE = Scene(SceneSettings(**SMALL))


def pictures(count: int) -> list[testing.Element]:
    return [frame_of(SCENE, number) for number in range(1, count + 1)]


def frame_of(scene: Scene, number: int) -> bytes:
    return encode_frame(Frame(number, 320, 240, encode_jpeg(scene.picture(number))))


def persons(faces: Any) -> list[str | None]:
    """From left to right."""
    return [face["person"] for face in sorted(msgspec.to_builtins(faces), key=lambda face: float(face["x"]))]


def expected(number: int) -> list[str]:
    truth = sorted(SCENE.truth(number), key=lambda shown: shown.box.x)
    return [person if person in SCENE.persons_of_interest else UNKNOWN for person, _ in truth]


@pytest.mark.parametrize("name", ["face_recognition", "video_correlation", "heat_map"])
def test_ready_made_queries_can_flow(name: str) -> None:
    query = QUERIES[name]()
    assert query.name == name
    roles = {operator.name: OPERATORS[operator.kind].role for operator in query.operators}
    assert query_problems(query, roles) == []
    for operator in query.operators:
        msgspec.convert(operator.params, OPERATORS[operator.kind].params)


@pytest.mark.parametrize("cameras", [1, 2, 3, 5, 8])
def test_a_heat_map_is_a_tree_of_any_number_of_cameras(cameras: int) -> None:
    query = QUERIES["heat_map"](cameras=cameras)
    roles = {operator.name: OPERATORS[operator.kind].role for operator in query.operators}
    assert query_problems(query, roles) == []
    assert len(query.sources()) == cameras and len(query.sinks()) == 1
    assert all(len(operator.after) <= 2 for operator in query.operators)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("face_recognition", {"source": "video_file"}, "needs a path"),
        ("face_recognition", {"path": "x.avi"}, "has no path"),
        ("video_correlation", {"cameras": 1}, "2 to 64 cameras"),
        ("heat_map", {"cameras": 0}, "1 to 64 cameras"),
    ],
)
def test_arguments_that_make_no_query_are_refused(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QUERIES[name](**params)


def test_the_parameters_of_a_source_reach_it() -> None:
    camera = QUERIES["face_recognition"](source="camera", path="/dev/video3", rate=5).operator("camera")
    assert (camera.kind, camera.params["device"], camera.params["rate"]) == ("camera", "/dev/video3", 5)
    clip = QUERIES["face_recognition"](source="video_file", path="clip.avi").operator("camera")
    assert (clip.kind, clip.params["path"]) == ("video_file", "clip.avi")


def test_a_query_in_one_process_names_everybody() -> None:
    results = testing.run(QUERIES["face_recognition"](**SMALL), {"camera": pictures(30)}, every=0.1)
    seen = [event for event in results.events if isinstance(event, FacesSeen)]
    assert [event.frame for event in seen] == list(range(1, 31))
    right = sum(persons(event.faces) == expected(event.frame) for event in seen)
    assert right >= 29


def test_cameras_that_see_the_same_people_agree() -> None:
    query = QUERIES["video_correlation"](**SMALL, matching=True)
    views = [Scene(SceneSettings(**SMALL, strangers=0, view=view)) for view in (0, 1)]
    sources: dict[str, list[testing.Element]] = {
        f"camera{place}": [frame_of(view, number) for number in (9, 19, 29)]
        for place, view in enumerate(views, 1)
    }
    results = testing.run(query, sources, every=0.2)
    seen = [event for event in results.events if isinstance(event, FacesSeen)]
    assert [event.frame for event in seen] == [9, 19, 29]
    for event in seen:
        there = [person for person, _ in views[0].truth(event.frame)]
        assert sorted(persons(event.faces), key=str) == sorted(there * 2)


def test_heat_adds_up_over_cameras_and_windows() -> None:
    query = QUERIES["heat_map"](cameras=3, window=1)
    sources = {f"camera{place}": pictures(6) for place in (1, 2, 3)}
    results = testing.run(query, sources, every=0.25)
    maps = [decode_heat(payload) for payload in results["screen"]]
    assert [heat.frames for heat in maps] == [12, 6]
    shown = [sum(len(SCENE.truth(number)) for number in part) for part in ((1, 2, 3, 4), (5, 6))]
    assert [sum(heat.counts) for heat in maps] == [3 * count for count in shown]


def recognising(**params: Any) -> Query:
    query: Query = QUERIES["face_recognition"](**{**SMALL, "limit": 20, **params})
    return query


def on_radio(
    directory: Path, query: Query, placement: Mapping[str, tuple[str, ...]], **config: Any
) -> Testbed:
    bed: list[Testbed] = []

    async def scenario() -> None:
        testbed = RadioTestbed(directory, plan(query, placement), **config)
        bed.append(testbed)
        await testbed.start()
        await asyncio.sleep(15)
        await testbed.stop()
        assert all(agent.failure is None for agent in testbed.agents.values())

    run(scenario)
    return bed[0]


@pytest.mark.parametrize("forward", ["frames", "crops"])
def test_the_network_changes_nothing_about_who_is_seen(tmp_path: Path, forward: str) -> None:
    testbed = on_radio(tmp_path, recognising(forward=forward), TWICE)
    alone = testing.run(recognising(forward=forward), {"camera": pictures(20)}, every=0.1)
    here = {event.frame: event for event in alone.events if isinstance(event, FacesSeen)}
    seen = testbed.records("faces_seen")
    assert [record["frame"] for record in seen] == list(range(1, 21))
    for record in seen:
        assert record["faces"] == list(msgspec.to_builtins(here[record["frame"]].faces))
        assert record["gallery"] == here[record["frame"]].gallery
        assert 0.016e9 < record["latency_ns"] < 1e9
    true = testbed.records("faces_true")
    assert [(record["origin"], record["frame"]) for record in true] == [("camera/0", n) for n in range(1, 21)]
    assert [record["content"] for record in testbed.records("video_source")] == [
        "synthetic scene of orl faces"
    ]


def test_same_seed_same_run(tmp_path: Path) -> None:
    runs = [on_radio(tmp_path / name, recognising(limit=10), ALONE) for name in ("one", "other")]
    kinds = ("faces_true", "faces_seen", "tuple_delivered")
    one, other = ([testbed.records(kind) for kind in kinds] for testbed in runs)
    assert one == other and one[0]


@pytest.mark.parametrize("reliability", ["best_effort", "at_least_once"])
def test_a_closed_loop_is_as_fast_as_the_slowest_operator_and_loses_nothing(
    tmp_path: Path, reliability: Any
) -> None:
    fast = recognising(rate="saturate", limit=30, cpu=0.16)
    query = msgspec.structs.replace(fast, reliability=reliability)
    testbed = on_radio(tmp_path, query, ALONE, limits=Limits())
    assert testbed.records("tuple_dropped") == []
    delivered = testbed.records("tuple_delivered")
    assert len(delivered) == 30
    seconds = (delivered[-1]["t_ns"] - delivered[0]["t_ns"]) / 1e9
    faces = sum(len(SCENE.truth(number)) for number in range(2, 31))
    assert seconds == pytest.approx(faces * 0.1, rel=0.1), "recognition takes 0.1 s a face"


def test_a_fixed_rate_beyond_what_the_query_can_do_drops_at_the_source(tmp_path: Path) -> None:
    testbed = on_radio(tmp_path, recognising(rate=50, limit=30, cpu=0.16), ALONE, limits=Limits())
    dropped = testbed.records("tuple_dropped")
    assert {record["reason"] for record in dropped} == {"source_buffer_full"}
    assert len(dropped) + len(testbed.records("tuple_delivered")) == 30


def test_the_same_query_in_real_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        deployment = plan(recognising(limit=10, rate=20), ALONE)
        testbed = Testbed(tmp_path, deployment, LoopbackNetwork(nodes_of(deployment)), sample_period=0.05)
        await testbed.start()
        await until(lambda: len(testbed.records("faces_seen")) >= 10)
        await testbed.stop()
        assert all(agent.failure is None for agent in testbed.agents.values())
        for record in testbed.records("faces_seen"):
            assert persons(record["faces"]) == expected(record["frame"])

    on_loopback(scenario)


def test_an_agent_without_what_its_operator_needs_says_so(tmp_path: Path) -> None:
    missing = recognising(source="camera", path="/dev/video99")
    message = "agent n1 cannot run: query: operator camera: camera /dev/video99 cannot be opened"

    async def scenario() -> None:
        with pytest.raises(BadConfig, match=message):
            RadioTestbed(tmp_path, plan(missing, ALONE))

    run(scenario)


def test_the_screen_leaves_pictures_in_the_directory_of_its_node(tmp_path: Path) -> None:
    deployment = plan(recognising(limit=4, every=2), dict.fromkeys(ALONE, ("n1",)))

    async def scenario() -> None:
        network = RadioNetwork(("n1",))
        config = query_agent("n1", deployment, {"n1": network.address("n1")}, {"n1": bytes(32)})
        port = network.port("n1")
        log = SegmentLog(tmp_path / "segments", "run", "n1", port.now_ns)
        agent = Agent(config, port, network, log, directory=tmp_path)
        await agent.start()
        agent.open_sources()
        await asyncio.sleep(10)
        await agent.stop("done")

    run(scenario)
    files = sorted((tmp_path / "frames" / "screen-0").iterdir())
    assert [file.name for file in files] == ["00000001.jpg", "00000003.jpg", "latest.jpg"]
    assert all(decode_image(file.read_bytes()).shape == (240, 320, 3) for file in files)
