"""The kinds of video operators, by name.

OpenCV and NumPy are imported by the factories and not here: an agent that runs other operators does not load
them, and files can be checked where they are not installed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from node_agent.apps.dataflow.faces.heat import HeatMapper
from node_agent.apps.dataflow.faces.models import ModelMissing
from node_agent.apps.dataflow.faces.params import (
    CameraParams,
    CorrelateParams,
    DetectParams,
    FileParams,
    HeatMapParams,
    PicturesParams,
    RecogniseParams,
    SceneParams,
    ShowHeatParams,
    ShowParams,
)
from node_agent.apps.dataflow.operators.pace import SATURATE
from node_agent.apps.dataflow.operators.registry import (
    Context,
    Operator,
    OperatorKind,
    OperatorUnusable,
    Source,
)

if TYPE_CHECKING:
    from node_agent.apps.dataflow.faces.gallery import Gallery


@contextmanager
def _all_there() -> Iterator[None]:
    """What a factory finds missing, said in one way."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("cv2", "numpy"):
            raise
        raise OperatorUnusable(f"{error.name} is not installed: pip install 'rove-testbed[faces]'") from error
    except (ModelMissing, OSError) as error:
        raise OperatorUnusable(str(error)) from error


def _file(context: Context, path: str) -> Path:
    return (context.directory or Path()) / path


def _camera(params: CameraParams, context: Context) -> Source:
    with _all_there():
        from node_agent.apps.dataflow.faces.captures import Camera
        from node_agent.apps.dataflow.faces.sources import Video

        rate = None if params.rate == SATURATE else params.rate
        return Video(params, context, Camera(params.device, params.width, params.height, rate))


def _video_file(params: FileParams, context: Context) -> Source:
    with _all_there():
        from node_agent.apps.dataflow.faces.captures import VideoFile
        from node_agent.apps.dataflow.faces.sources import Video

        return Video(params, context, VideoFile(_file(context, params.path), params.repeat))


def _pictures(params: PicturesParams, context: Context) -> Source:
    with _all_there():
        from node_agent.apps.dataflow.faces.captures import Pictures
        from node_agent.apps.dataflow.faces.sources import Video

        return Video(params, context, Pictures(_file(context, params.path), params.repeat))


def _synthetic_scene(params: SceneParams, context: Context) -> Source:
    with _all_there():
        from node_agent.apps.dataflow.faces.captures import Stage
        from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings
        from node_agent.apps.dataflow.faces.sources import Video

        chosen = {name: getattr(params, name) for name in SceneSettings.__struct_fields__}
        try:
            scene = Scene(SceneSettings(**chosen))
        except ValueError as error:
            raise OperatorUnusable(f"there is no such scene: {error}") from error
        return Video(params, context, Stage(scene))


def _detect_faces(params: DetectParams, context: Context) -> Operator:
    with _all_there():
        from node_agent.apps.dataflow.faces.annotating import Annotator, FaceFinder
        from node_agent.apps.dataflow.faces.detection import shared_detector

        finder = FaceFinder(shared_detector(params.detector), params.forward)
        return Annotator(context, finder, lambda frame: params.cpu)


@contextmanager
def _good_gallery() -> Iterator[None]:
    with _all_there():
        from node_agent.apps.dataflow.faces.gallery import BadGallery

        try:
            yield
        except BadGallery as error:
            raise OperatorUnusable(str(error)) from error


def _recognise_faces(params: RecogniseParams, context: Context) -> Operator:
    with _good_gallery():
        return _recognise_with(_gallery(params, context), params, context)


def _gallery(params: RecogniseParams, context: Context) -> "Gallery":
    from node_agent.apps.dataflow.faces.preload import gallery_of
    from node_agent.apps.dataflow.faces.scene_gallery import scene_gallery

    if params.gallery:
        return gallery_of(_file(context, params.gallery), params.version)
    return scene_gallery(params.persons, params.enrolled)


def _gallery_bytes(params: RecogniseParams, context: Context) -> bytes:
    """The gallery is what is immutable and large; the networks are installed everywhere."""
    with _good_gallery():
        return _gallery(params, context).encode()


def _recognise_from(params: RecogniseParams, context: Context, state: bytes) -> Operator:
    with _good_gallery():
        from node_agent.apps.dataflow.faces.gallery import Gallery

        return _recognise_with(Gallery.decode(state), params, context)


def _recognise_with(gallery: "Gallery", params: RecogniseParams, context: Context) -> Operator:
    with _all_there():
        from node_agent.apps.dataflow.faces.annotating import Annotator, FaceNamer
        from node_agent.apps.dataflow.faces.recognition import Recogniser

        namer = FaceNamer(Recogniser(gallery, params.method, params.threshold))
        return Annotator(context, namer, lambda frame: params.cpu * len(frame.faces))


def _show_faces(params: ShowParams, context: Context) -> Operator:
    with _all_there():
        from node_agent.apps.dataflow.faces.display import Display

        return Display(params, context)


def _correlate_frames(params: CorrelateParams, context: Context) -> Operator:
    with _all_there():
        from node_agent.apps.dataflow.faces.correlation import Correlator

        return Correlator(params, context)


def _show_heat_map(params: ShowHeatParams, context: Context) -> Operator:
    with _all_there():
        from node_agent.apps.dataflow.faces.heat_display import HeatDisplay

        return HeatDisplay(params, context)


CAMERA = OperatorKind("camera", "source", CameraParams, _camera)
VIDEO_FILE = OperatorKind("video_file", "source", FileParams, _video_file)
PICTURES = OperatorKind("pictures", "source", PicturesParams, _pictures)
SYNTHETIC_SCENE = OperatorKind("synthetic_scene", "source", SceneParams, _synthetic_scene)
DETECT_FACES = OperatorKind("detect_faces", "operator", DetectParams, _detect_faces)
RECOGNISE_FACES = OperatorKind(
    "recognise_faces",
    "operator",
    RecogniseParams,
    _recognise_faces,
    state=_gallery_bytes,
    restore=_recognise_from,
)
CORRELATE_FRAMES = OperatorKind("correlate_frames", "operator", CorrelateParams, _correlate_frames)
HEAT_MAP = OperatorKind("heat_map", "operator", HeatMapParams, HeatMapper)
SHOW_FACES = OperatorKind("show_faces", "sink", ShowParams, _show_faces)
SHOW_HEAT_MAP = OperatorKind("show_heat_map", "sink", ShowHeatParams, _show_heat_map)
