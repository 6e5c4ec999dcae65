"""A source of video: takes pictures when they are due and makes frames of them.

It waits for an unplugged camera, and skips unreadable pictures; both are reported.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import cv2
import msgspec
import numpy as np

from node_agent.apps.dataflow.faces.adaptation import Adaptation
from node_agent.apps.dataflow.faces.captures import Capture, CaptureLost, Shot
from node_agent.apps.dataflow.faces.events import FaceRecord, FacesTrue, VideoSource
from node_agent.apps.dataflow.faces.faults import Faults
from node_agent.apps.dataflow.faces.frames import Frame, encode_frame
from node_agent.apps.dataflow.faces.params import VideoParams
from node_agent.apps.dataflow.faces.pixels import BadImage, Image, encode_jpeg
from node_agent.apps.dataflow.operators.pace import SATURATE
from node_agent.apps.dataflow.operators.registry import Context

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
"""Seconds before a lost camera is opened again."""
MOST_BEHIND = 1.0
"""Seconds of delay that a source catches up with; after a longer delay it continues from now."""
BAD_IMAGE_PAUSE = 0.1
"""Seconds before the next picture, if the source saturates: a folder without a single good picture must not
be read as fast as can be.
"""


class Video:
    def __init__(self, params: VideoParams, context: Context, capture: Capture) -> None:
        self._params = params
        self._context = context
        self._capture = capture
        self._faults = Faults(context)
        self._taken = 0
        self._due: float | None = None
        self._adaptation = Adaptation()
        self._recorded: VideoSource | None = None

    async def next(self, tau: int) -> bytes | None:
        if 0 < self._params.limit < tau:
            return None
        while True:
            in_time = await self._wait_until_due()
            if self._params.adapt:
                self._adaptation = self._adaptation.after(in_time)
            self._taken += 1
            try:
                return await self._take()
            except BadImage as error:
                self._faults.count("bad_image", error)
                rate = self._params.rate
                await self._context.sleep(BAD_IMAGE_PAUSE if rate == SATURATE else 1 / rate)

    async def _wait_until_due(self) -> bool:
        """Returns whether the path had room when the picture was due."""
        rate = self._params.rate
        if rate == SATURATE:
            return True  # the source was asked because there is room
        if self._due is not None:
            self._due += 1 / rate
        now = self._context.time()
        if self._due is None or now - self._due > MOST_BEHIND:
            self._due = now
        await self._context.sleep(max(0.0, self._due - now))
        outlet = self._context.outlet
        return outlet is None or outlet.has_room()

    async def _take(self) -> bytes | None:
        number, step = self._taken, self._adaptation.step
        width, height = (round(side * step.scale) for side in (self._params.width, self._params.height))
        quality = round(self._params.quality * step.quality)

        def made(shot: Shot | None) -> tuple[Frame, Shot] | None:
            return None if shot is None else (frame_of(shot, number, width, height, quality), shot)

        if self._capture.waits:
            waited_for = await self._wait_for_shot(number)
            taken = await self._work(lambda: made(waited_for))
        else:
            taken = await self._work(lambda: made(self._capture.take(number)))
        if taken is None:
            return None
        self._record(*taken, quality)
        return encode_frame(taken[0])

    async def _work(self, function: Callable[[], T]) -> T:
        return await self._context.work(function, modelled=self._params.cpu)

    async def _wait_for_shot(self, number: int) -> Shot | None:
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._context.wait_for(partial(self._capture.take, number))
            except CaptureLost as error:
                self._faults.count("camera_lost", error)
                await self._context.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _record(self, frame: Frame, shot: Shot, quality: int) -> None:
        replica = self._context.replica
        now = VideoSource(replica, self._capture.content, frame.width, frame.height, quality)
        if now != self._recorded:
            self._recorded = now
            self._context.record(now)
        if shot.truth is not None:
            scale = frame.width / shot.image.shape[1]
            faces = tuple(
                FaceRecord(person, *(side * scale for side in msgspec.structs.astuple(box)))
                for person, box in shot.truth
            )
            self._context.record(FacesTrue(replica, replica, frame.number, faces))


def frame_of(shot: Shot, number: int, width: int, height: int, quality: int) -> Frame:
    return Frame(number, width, height, encode_jpeg(sized(shot.image, width, height), quality))


def sized(image: Image, width: int, height: int) -> Image:
    """Returns the middle of the picture in another size: cut if its shape differs, not distorted."""
    has_height, has_width = image.shape[:2]
    if (has_width, has_height) == (width, height):
        return image
    share = min(has_width / width, has_height / height)
    cut_width, cut_height = max(1, round(width * share)), max(1, round(height * share))
    left, top = (has_width - cut_width) // 2, (has_height - cut_height) // 2
    cut = image[top : top + cut_height, left : left + cut_width]
    way = cv2.INTER_AREA if share > 1 else cv2.INTER_LINEAR
    return cv2.resize(cut, (width, height), interpolation=way).astype(np.uint8, copy=False)
