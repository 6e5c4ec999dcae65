"""The parameters of the video operators, with their bounds, as an experiment file may set them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from node_agent.apps.dataflow.operators.pace import Saturate
from node_agent.telemetry.belief import OLD_APP

Side = Annotated[int, Meta(ge=32, le=4096)]
Seconds = Annotated[float, Meta(gt=0, le=60)]
Several = Annotated[int, Meta(ge=1, le=1000)]

NAMES = "names"
"""The key that says what a parameter's text names, so that a checker of files knows what must exist."""
GalleryFile = Annotated[str, Meta(extra={NAMES: "gallery"})]
VideoPath = Annotated[str, Meta(extra={NAMES: "file"})]
PicturesPath = Annotated[str, Meta(extra={NAMES: "folder"})]
SourcePath = Annotated[str, Meta(extra={NAMES: "source"})]

PEOPLE = 40
"""How many people can appear in the synthetic scene."""

Forward = Literal["frames", "crops", "positions"]
DetectorName = Literal["yunet", "haar", "lbp"]
Method = Literal["embedding", "lbph"]


class VideoParams(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A ``limit`` of 0 means endless. ``adapt``: lowers quality and resolution while the path does not keep
    up with ``rate``; without effect if the source saturates. ``cpu``: seconds of one core that a picture
    takes in virtual time.
    """

    width: Side = 320
    height: Side = 240
    rate: Annotated[float, Meta(gt=0, le=1000)] | Saturate = 10.0
    quality: Annotated[int, Meta(ge=10, le=100)] = 80
    limit: Annotated[int, Meta(ge=0)] = 0
    adapt: bool = False
    cpu: Seconds = 0.003


class CameraParams(VideoParams, frozen=True, kw_only=True):
    device: str = "/dev/video0"


class FileParams(VideoParams, frozen=True, kw_only=True):
    """``path`` of a video file: relative ones are in the node's own directory. ``repeat``: begin again at
    the end."""

    path: VideoPath
    repeat: bool = True


class PicturesParams(FileParams, frozen=True, kw_only=True):
    """``path`` of a folder of pictures."""

    path: PicturesPath


class SceneParams(VideoParams, frozen=True, kw_only=True):
    """See ``scene.SceneSettings``."""

    seed: Annotated[int, Meta(ge=0, le=2**32)] = 1
    view: Annotated[int, Meta(ge=0, le=1000)] = 0
    at_once: Annotated[int, Meta(ge=1, le=12)] = 2
    persons: Annotated[int, Meta(ge=0, le=PEOPLE)] = 20
    strangers: Annotated[float, Meta(ge=0, le=1)] = 0.3
    enrolled: Annotated[int, Meta(ge=0, le=9)] = 3
    stay: Annotated[int, Meta(ge=10, le=100_000)] = 50


class DetectParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``forward``: the whole picture, the faces cut out of it, or only where they are. ``cpu`` in seconds a
    frame, in virtual time."""

    detector: DetectorName = "yunet"
    forward: Forward = "frames"
    cpu: Seconds = 0.006


class RecogniseParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``gallery``: a file; a relative path is in the node's own directory. Empty: the ``persons`` of interest
    of the synthetic scene, from the pictures ``enrolled`` of them. ``version``: what the gallery must have;
    empty: any. ``threshold``: the distance from which a face is a stranger's; None: that of the method.
    ``cpu``: seconds a face, in virtual time.
    """

    gallery: GalleryFile = ""
    version: str = ""
    persons: Annotated[int, Meta(ge=1, le=PEOPLE)] = 20
    enrolled: Annotated[int, Meta(ge=1, le=9)] = 3
    method: Method = "embedding"
    threshold: Annotated[float, Meta(gt=0, le=1000)] | None = None
    cpu: Seconds = 0.010


class ShowParams(Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps every ``every``-th frame, the last ``keep`` of them; also the newest one, once every ``refresh``
    seconds. ``cpu``: seconds a frame that is drawn, in virtual time.
    """

    every: Several = 10
    keep: Annotated[int, Meta(ge=0, le=10_000)] = 100
    refresh: Seconds = 0.5
    cpu: Seconds = 0.003


class CorrelateParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``matching``: pass on only what shows a person that every camera sees."""

    matching: bool = False
    cpu: Seconds = 0.004


Cells = Annotated[int, Meta(ge=1, le=256)]


class HeatMapParams(Struct, frozen=True, forbid_unknown_fields=True):
    columns: Cells = 16
    rows: Cells = 12


class ShowHeatParams(Struct, frozen=True, forbid_unknown_fields=True):
    keep: Annotated[int, Meta(ge=0, le=10_000)] = 100
    cpu: Seconds = 0.002


def folder_of(app: str, replica: str) -> str:
    """The folder of a sink's pictures: ``screen-0``, or ``faces.screen-0`` of an application with a name."""
    name = replica.replace("/", "-")
    return name if app in ("", OLD_APP) else f"{app}.{name}"
