"""Takes pictures from a camera, a video file, a folder of pictures, or the synthetic scene.

``take`` blocks. If a device is gone, the next call opens it again, so the caller decides how often.
"""

import re
from pathlib import Path
from typing import NamedTuple, Protocol

import cv2

from node_agent.apps.dataflow.faces.pixels import BadImage, Image, decode_image, to_bgr
from node_agent.apps.dataflow.faces.scene import Scene, Shown
from node_agent.apps.dataflow.operators.registry import OperatorUnusable

PICTURES = (".jpg", ".jpeg", ".png", ".pgm", ".ppm", ".bmp", ".webp")
_VIDEO_DEVICE = re.compile(r"/dev/video(\d+)")


class SourceMissing(OperatorUnusable):
    """There is nothing to take pictures from."""


class CaptureLost(Exception):
    """The device delivers no pictures any more; it may come back."""


class Shot(NamedTuple):
    """``truth``: the faces that are visible in the picture, if known."""

    image: Image
    truth: tuple[Shown, ...] | None = None


class Capture(Protocol):
    @property
    def content(self) -> str:
        """What is visible, for the record."""
        ...

    @property
    def waits(self) -> bool:
        """Whether taking a picture is waiting for a device rather than work."""
        ...

    def take(self, number: int) -> Shot | None:
        """Returns picture ``number`` (1, 2, …); None at the end. Raises CaptureLost, BadImage."""
        ...


class Camera:
    """``/dev/videoN``, or the address of a stream that OpenCV can open."""

    waits = True

    def __init__(self, device: str, width: int, height: int, rate: float | None) -> None:
        """``rate`` None: as many pictures a second as the camera takes. Raises SourceMissing."""
        self.content = device
        self._wanted = (
            (cv2.CAP_PROP_FRAME_WIDTH, width),
            (cv2.CAP_PROP_FRAME_HEIGHT, height),
            *(((cv2.CAP_PROP_FPS, rate),) if rate is not None else ()),
            (cv2.CAP_PROP_BUFFERSIZE, 1),  # old pictures are of no use
        )
        self._opened: cv2.VideoCapture | None = self._open()
        if self._opened is None:
            raise SourceMissing(f"camera {device} cannot be opened: is it there, and may this user read it?")

    def take(self, number: int) -> Shot | None:
        if self._opened is None:
            self._opened = self._open()
        if self._opened is None:
            raise CaptureLost(f"camera {self.content} cannot be opened")
        got, image = self._opened.read()
        if not got:
            self._opened.release()
            self._opened = None
            raise CaptureLost(f"camera {self.content} gives no picture")
        return Shot(to_bgr(image))

    def _open(self) -> cv2.VideoCapture | None:
        device = _VIDEO_DEVICE.fullmatch(self.content)
        opened = cv2.VideoCapture(int(device[1]), cv2.CAP_V4L2) if device else cv2.VideoCapture(self.content)
        if not opened.isOpened():
            return None
        for setting, value in self._wanted:
            opened.set(setting, value)
        return opened


class VideoFile:
    waits = False

    def __init__(self, path: Path, repeat: bool) -> None:
        """Raises SourceMissing."""
        self.content = path.name
        self._path = path
        self._repeat = repeat
        self._opened = self._open()

    def take(self, number: int) -> Shot | None:
        shot = self._next()
        if shot is None and self._repeat:
            self._opened = self._open()
            shot = self._next()
        return shot

    def _next(self) -> Shot | None:
        """None at the end; raises BadImage if there should be more."""
        got, image = self._opened.read()
        self._at += 1
        if got:
            return Shot(to_bgr(image))
        if self._at <= self._opened.get(cv2.CAP_PROP_FRAME_COUNT):
            raise BadImage(f"{self.content}: picture {self._at} cannot be read")
        return None

    def _open(self) -> cv2.VideoCapture:
        opened = cv2.VideoCapture(str(self._path))
        if not opened.isOpened():
            raise SourceMissing(f"video {self._path} does not exist or is no video that OpenCV can read")
        self._at = 0
        return opened


class Pictures:
    """The picture files of a folder, in the order of their names."""

    waits = False

    def __init__(self, folder: Path, repeat: bool) -> None:
        """Raises SourceMissing."""
        self.content = folder.name
        try:
            self._files = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)
        except OSError as error:
            raise SourceMissing(f"folder of pictures {folder}: {error.strerror}") from error
        if not self._files:
            raise SourceMissing(f"there is no picture in {folder}: files ending in {', '.join(PICTURES)}")
        self._repeat = repeat

    def take(self, number: int) -> Shot | None:
        if number > len(self._files) and not self._repeat:
            return None
        path = self._files[(number - 1) % len(self._files)]
        try:
            return Shot(decode_image(path.read_bytes()))
        except OSError as error:
            raise BadImage(f"{path.name}: {error.strerror}") from error
        except BadImage as error:
            raise BadImage(f"{path.name}: {error}") from error


class Stage:
    """The synthetic scene."""

    waits = False

    def __init__(self, scene: Scene) -> None:
        self.content = f"synthetic scene of {scene.kind} faces"
        self._scene = scene

    def take(self, number: int) -> Shot | None:
        return Shot(self._scene.picture(number), self._scene.truth(number))
