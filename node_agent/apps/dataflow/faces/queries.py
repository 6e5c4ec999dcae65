"""Ready-made video queries: face recognition as in the paper (figure 4), and similar ones."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from node_agent.apps.dataflow.faces.params import DetectorName, Forward, GalleryFile, Method, SourcePath
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import SameTau, TimeWindow
from node_agent.apps.dataflow.operators.pace import Rate

SourceKind = Literal["synthetic_scene", "camera", "video_file", "pictures"]

DETECTION = 3 / 8
"""The share of detection in the work on a frame with one face; the rest is recognition."""
MAX_CAMERAS = 64


def face_recognition(
    source: SourceKind = "synthetic_scene",
    path: SourcePath = "",
    width: int = 320,
    height: int = 240,
    rate: Rate = 10.0,
    quality: int = 80,
    adapt: bool = False,
    limit: int = 0,
    seed: int = 1,
    at_once: int = 2,
    strangers: float = 0.3,
    persons: int = 20,
    enrolled: int = 3,
    gallery: GalleryFile = "",
    detector: DetectorName = "yunet",
    method: Method = "embedding",
    forward: Literal["frames", "crops"] = "frames",
    every: int = 10,
    keep: int = 100,
    cpu: float = 0.016,
) -> Query:
    """camera → detect → recognise → screen.

    ``path`` is that of a source that needs one, or a camera's device. ``cpu``: the seconds of one core that
    detection and recognition together take for a frame with one face, in virtual time.
    """
    video = {
        "width": width,
        "height": height,
        "rate": rate,
        "quality": quality,
        "adapt": adapt,
        "limit": limit,
    }
    scene = {
        "seed": seed,
        "at_once": at_once,
        "strangers": strangers,
        "persons": persons,
        "enrolled": enrolled,
    }
    camera = OperatorSpec("camera", source, (), {**video, **_of_source(source, path, scene)})
    detect = _detect("detect", "camera", cpu, detector, forward)
    recognise = _recognise("recognise", "detect", cpu, gallery, persons, enrolled, method)
    screen = OperatorSpec("screen", "show_faces", ("recognise",), {"every": every, "keep": keep})
    return Query("face_recognition", (camera, detect, recognise, screen))


def video_correlation(
    cameras: Annotated[int, Meta(ge=2, le=MAX_CAMERAS)] = 2,
    width: int = 320,
    height: int = 240,
    rate: Rate = 5.0,
    quality: int = 80,
    seed: int = 1,
    persons: int = 20,
    enrolled: int = 3,
    gallery: GalleryFile = "",
    matching: bool = False,
    cpu: float = 0.016,
) -> Query:
    """Cameras that see the same people from different sides, each with its own detection and recognition. A
    join combines what they saw at the same time.
    """
    if not 2 <= cameras <= MAX_CAMERAS:
        raise ValueError(f"a correlation is one of 2 to {MAX_CAMERAS} cameras, not {cameras}")
    operators: list[OperatorSpec] = []
    for number in range(1, cameras + 1):
        view = {"width": width, "height": height, "rate": rate, "quality": quality, "seed": seed}
        view |= {"view": number - 1, "persons": persons, "enrolled": enrolled}
        operators += (
            OperatorSpec(f"camera{number}", "synthetic_scene", (), view),
            _detect(f"detect{number}", f"camera{number}", cpu),
            _recognise(f"recognise{number}", f"detect{number}", cpu, gallery, persons, enrolled),
        )
    recognised = tuple(f"recognise{number}" for number in range(1, cameras + 1))
    correlate = OperatorSpec(
        "correlate", "correlate_frames", recognised, {"matching": matching}, takes=SameTau()
    )
    return Query(
        "video_correlation", (*operators, correlate, OperatorSpec("screen", "show_faces", ("correlate",)))
    )


def heat_map(
    cameras: Annotated[int, Meta(ge=1, le=MAX_CAMERAS)] = 4,
    width: int = 320,
    height: int = 240,
    rate: Rate = 5.0,
    quality: int = 80,
    seed: int = 1,
    window: Annotated[int, Meta(ge=1, le=3600)] = 2,
    columns: int = 16,
    rows: int = 12,
    cpu: float = 0.006,
) -> Query:
    """Counts where people are, over ``window`` seconds: a tree in which each heat map takes at most two
    inputs.
    """
    if not 1 <= cameras <= MAX_CAMERAS:
        raise ValueError(f"a heat map is one of 1 to {MAX_CAMERAS} cameras, not {cameras}")
    operators: list[OperatorSpec] = []
    for number in range(1, cameras + 1):
        view = {"width": width, "height": height, "rate": rate, "quality": quality, "seed": seed + number}
        operators += (
            OperatorSpec(f"camera{number}", "synthetic_scene", (), view),
            OperatorSpec(
                f"detect{number}", "detect_faces", (f"camera{number}",), {"forward": "positions", "cpu": cpu}
            ),
        )
    grid = {"columns": columns, "rows": rows}
    together = TimeWindow(window * 10**9, window * 10**9)
    level, inputs = 1, [f"detect{number}" for number in range(1, cameras + 1)]
    while level == 1 or len(inputs) > 1:
        pairs = [tuple(inputs[first : first + 2]) for first in range(0, len(inputs), 2)]
        names = [f"heat{level}-{place}" for place in range(1, len(pairs) + 1)]
        operators += (
            OperatorSpec(name, "heat_map", pair, grid, takes=together)
            for name, pair in zip(names, pairs, strict=True)
        )
        level, inputs = level + 1, names
    return Query("heat_map", (*operators, OperatorSpec("screen", "show_heat_map", tuple(inputs))))


def _of_source(source: SourceKind, path: str, scene: dict[str, Any]) -> dict[str, Any]:
    if source == "synthetic_scene":
        if path:
            raise ValueError(f"the synthetic scene has no path: leave out {path!r}, or name another source")
        return scene
    if source == "camera":
        return {"device": path} if path else {}
    if not path:
        raise ValueError(f"source {source} needs a path")
    return {"path": path}


def _detect(
    name: str, after: str, cpu: float, detector: DetectorName = "yunet", forward: Forward = "frames"
) -> OperatorSpec:
    params = {"detector": detector, "forward": forward, "cpu": cpu * DETECTION}
    return OperatorSpec(name, "detect_faces", (after,), params)


def _recognise(
    name: str,
    after: str,
    cpu: float,
    gallery: str,
    persons: int,
    enrolled: int,
    method: Method = "embedding",
) -> OperatorSpec:
    params = {"gallery": gallery, "persons": persons, "enrolled": enrolled, "method": method}
    return OperatorSpec(name, "recognise_faces", (after,), {**params, "cpu": cpu * (1 - DETECTION)})
