"""A run's own files on their way to a node: which are shipped, and what the node's plan calls them."""

from pathlib import Path

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from orchestrator.apps.dataflow.shipment import shipped
from orchestrator.deployment.place import TOGETHER, batches

PLACE = "/home/pi/.rove/runs/r/n"


def plan(*operators: OperatorSpec, module: str | None = None) -> DeploymentPlan:
    """Each operator on a node of its own name."""
    replicas = tuple(Replica(operator.name, 0, operator.name) for operator in operators)
    return DeploymentPlan(Query("q", operators, module=module), replicas)


def made(path: Path, content: bytes = b"x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


def test_files_go_to_the_nodes_that_read_them(tmp_path: Path) -> None:
    film = made(tmp_path / "film.mp4")
    gallery = made(tmp_path / "g.gallery")
    whole = plan(
        OperatorSpec("a", "video_file", params={"path": film, "rate": 5}),
        OperatorSpec("b", "recognise_faces", ("a",), {"gallery": gallery, "version": "v"}),
    )
    for_a, for_b, for_c = (shipped(whole, node, PLACE) for node in "abc")
    assert for_a.files == {"files/0/film.mp4": Path(film)}
    assert for_a.plan.query.operator("a").params == {"path": f"{PLACE}/files/0/film.mp4", "rate": 5}
    assert for_b.files == {"files/0/g.gallery": Path(gallery)}
    assert for_b.plan.query.operator("b").params["version"] == "v"
    assert not for_c.files and for_c.plan == whole


def test_of_a_folder_the_pictures_and_each_file_once(tmp_path: Path) -> None:
    for name in ("b.png", "a.JPG", "notes.txt", "inner/c.png"):
        made(tmp_path / "pictures" / name)
    folder = str(tmp_path / "pictures")
    two = plan(
        OperatorSpec("a", "pictures", params={"path": folder}),
        OperatorSpec("b", "pictures", params={"path": folder}),
    )
    both = DeploymentPlan(two.query, tuple(Replica(name, 0, "n") for name in "ab"))
    shipment = shipped(both, "n", PLACE)
    assert list(shipment.files) == ["files/0/pictures/a.JPG", "files/0/pictures/b.png"]
    assert {o.params["path"] for o in shipment.plan.query.operators} == {f"{PLACE}/files/0/pictures"}


def test_what_is_the_nodes_own_is_left_alone(tmp_path: Path) -> None:
    whole = plan(
        OperatorSpec("a", "camera", params={"device": "/dev/null"}),
        OperatorSpec("b", "video_file", params={"path": "/media/card/film.mp4"}),
        OperatorSpec("c", "recognise_faces", ("a",), {"gallery": ""}),
        OperatorSpec("d", "video_file", params={"path": "/dev/null"}),
    )
    for node in "abcd":
        assert shipped(whole, node, PLACE) == (whole, {})


def test_the_file_of_a_query_goes_to_all_nodes(tmp_path: Path) -> None:
    module = made(tmp_path / "my_query.py", b"")
    shipment = shipped(plan(OperatorSpec("a", "camera"), module=module), "somebody", PLACE)
    assert shipment.plan.query.module == f"{PLACE}/files/0/my_query.py"
    assert shipment.files == {"files/0/my_query.py": Path(module)}


def test_small_files_go_together_but_not_too_many_at_once() -> None:
    assert list(batches({})) == [{}]  # the place is made even so
    half = bytes(TOGETHER // 2)
    names = [list(batch) for batch in batches(dict.fromkeys("abcde", half))]
    assert names == [["a", "b"], ["c", "d"], ["e"]]
