"""What video operators record: the faces of a picture, and what a source shows."""

from msgspec import Struct

from node_agent.model.telemetry import Event


class FaceRecord(Struct, frozen=True):
    """A face in a frame, in its pixels. ``person``: None if it was not recognised yet, empty for a
    stranger.
    """

    person: str | None
    x: float
    y: float
    width: float
    height: float
    score: float | None = None
    distance: float | None = None


class FacesTrue(Event, tag="faces_true", frozen=True):
    """Which faces a synthetic picture really shows. ``frame``: the picture's number, which it keeps on its
    way.
    """

    replica: str
    origin: str
    frame: int
    faces: tuple[FaceRecord, ...]


class FacesSeen(Event, tag="faces_seen", frozen=True):
    """What arrived at a sink about a picture. ``gallery``: the version that the persons were recognised
    with.
    """

    replica: str
    origin: str
    tau: int
    frame: int
    gallery: str
    latency_ns: int
    faces: tuple[FaceRecord, ...]


class VideoSource(Event, tag="video_source", frozen=True):
    """What a source shows, and at which size and JPEG quality from now on."""

    replica: str
    content: str
    width: int
    height: int
    quality: int


FACE_KINDS: tuple[type[Event], ...] = (FacesTrue, FacesSeen, VideoSource)
