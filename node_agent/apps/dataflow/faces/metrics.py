"""What video operators report while they run: pictures, the faces in them, and what sources show."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from node_agent.apps.dataflow.faces.events import FacesSeen, FacesTrue, VideoSource
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Metric, MetricKind, Sample

PICTURES_SHOWN = "rove_pictures_shown_total"
PICTURES_SEEN = "rove_pictures_seen_total"
FACES_SHOWN = "rove_faces_shown_total"
FACES_SEEN = "rove_faces_seen_total"
QUALITY = "rove_video_quality_ratio"
WIDTH = "rove_video_width_pixels"

KNOWN, STRANGER, UNRECOGNISED = "known", "stranger", "unrecognised"

FACE_METRICS = (
    Metric(
        PICTURES_SHOWN,
        MetricKind.COUNTER,
        "Pictures of a synthetic scene that a source showed.",
        ("replica",),
    ),
    Metric(
        PICTURES_SEEN, MetricKind.COUNTER, "Pictures that arrived at a sink of a face query.", ("replica",)
    ),
    Metric(FACES_SHOWN, MetricKind.COUNTER, "Faces that a synthetic scene really showed.", ("replica",)),
    Metric(
        FACES_SEEN,
        MetricKind.COUNTER,
        "Faces in pictures that arrived at a sink, by what recognition made of them: known, stranger or "
        "unrecognised.",
        ("replica", "outcome"),
    ),
    Metric(
        QUALITY, MetricKind.GAUGE, "JPEG quality of a video source at present, 0 to 1.", ("replica",), "ratio"
    ),
    Metric(WIDTH, MetricKind.GAUGE, "Width of a video source's pictures at present.", ("replica",), "pixels"),
)


class FaceTally:
    def __init__(self) -> None:
        self._pictures_shown: Counter[str] = Counter()
        self._pictures_seen: Counter[str] = Counter()
        self._shown: Counter[str] = Counter()
        self._seen: Counter[tuple[str, str]] = Counter()
        self._sources: dict[str, Any] = {}
        self.takes: Mapping[str, Callable[[Any, int], None]] = {
            tag_of(FacesTrue): self._true,
            tag_of(FacesSeen): self._see,
            tag_of(VideoSource): self._source,
        }

    def samples(self) -> Iterator[Sample]:
        for name, counts in (
            (PICTURES_SHOWN, self._pictures_shown),
            (PICTURES_SEEN, self._pictures_seen),
            (FACES_SHOWN, self._shown),
        ):
            for replica, count in counts.items():
                yield Sample(name, (replica,), count)
        for labels, count in self._seen.items():
            yield Sample(FACES_SEEN, labels, count)
        for replica, source in self._sources.items():
            yield Sample(QUALITY, (replica,), source.quality / 100)
            yield Sample(WIDTH, (replica,), source.width)

    def _true(self, record: Any, t_ns: int) -> None:
        self._pictures_shown[record.replica] += 1
        self._shown[record.replica] += len(record.faces)

    def _see(self, record: Any, t_ns: int) -> None:
        replica = record.replica
        self._pictures_seen[replica] += 1
        for face in record.faces:
            outcome = UNRECOGNISED if face.person is None else KNOWN if face.person else STRANGER
            self._seen[replica, outcome] += 1

    def _source(self, record: Any, t_ns: int) -> None:
        self._sources[record.replica] = record
