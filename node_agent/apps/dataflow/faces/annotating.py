"""Detects and recognises faces in frames, one frame after the other.

Every frame is passed on, annotated. A frame whose picture cannot be decoded is passed on unchanged; what is
not even a frame is dropped. Both are reported.
"""

from collections.abc import Callable, Sequence

import cv2
from msgspec import structs

from node_agent.apps.dataflow.faces.alignment import align
from node_agent.apps.dataflow.faces.detection import Detector
from node_agent.apps.dataflow.faces.faults import Faults
from node_agent.apps.dataflow.faces.frames import Face, Frame, encode_frame
from node_agent.apps.dataflow.faces.params import Forward
from node_agent.apps.dataflow.faces.pixels import BadImage, decode_image, encode_jpeg
from node_agent.apps.dataflow.faces.recognition import Recogniser
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit

CROP_QUALITY = 80


class Annotator:
    """``cpu``: the seconds of one core that a frame takes in virtual time."""

    def __init__(
        self, context: Context, annotate: Callable[[Frame], Frame], cpu: Callable[[Frame], float]
    ) -> None:
        self._context = context
        self._annotate = annotate
        self._cpu = cpu
        self._faults = Faults(context)

    async def process(self, unit: Unit) -> Sequence[bytes]:
        return [await self._annotated(frame, payload) for payload, frame in self._faults.frames(unit)]

    async def _annotated(self, frame: Frame, payload: bytes) -> bytes:
        try:
            done = await self._context.work(lambda: self._annotate(frame), modelled=self._cpu(frame))
        except (BadImage, cv2.error) as error:
            self._faults.count("bad_image", error)
            return payload
        return encode_frame(done)


class FaceFinder:
    def __init__(self, detector: Detector, forward: Forward) -> None:
        self._detector = detector
        self._forward = forward

    def __call__(self, frame: Frame) -> Frame:
        image = decode_image(frame.image)
        height, width = image.shape[:2]
        faces = self._detector.detect(image)
        if self._forward == "frames":
            return structs.replace(frame, width=width, height=height, faces=faces)
        if self._forward == "crops":
            faces = tuple(
                structs.replace(face, crop=encode_jpeg(align(image, face), CROP_QUALITY)) for face in faces
            )
        return structs.replace(frame, width=width, height=height, image=b"", faces=faces)


class FaceNamer:
    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser

    def __call__(self, frame: Frame) -> Frame:
        return structs.replace(frame, faces=self._named(frame), gallery=self._recogniser.gallery.version)

    def _named(self, frame: Frame) -> tuple[Face, ...]:
        if not frame.faces:
            return ()
        if frame.image:
            return self._recogniser.recognise(decode_image(frame.image), frame.faces)
        crops = [decode_image(face.crop) for face in frame.faces]
        return self._recogniser.recognise_crops(frame.faces, crops)
