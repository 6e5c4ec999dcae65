"""Pictures in memory: always 8-bit BGR, whatever the file or camera has; anything else is a BadImage."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces.frames import MAX_PIXELS

Image = NDArray[np.uint8]  # height × width × 3, blue first

# An operator occupies one core of its node (Context.work), and a pool of threads would not survive the fork
# from the process that loads the models.
cv2.setNumThreads(1)
cv2.ocl.setUseOpenCL(False)

JPEG_START, JPEG_END = b"\xff\xd8", b"\xff\xd9"
PNG_START, PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND"
PNG_AROUND = 12
"""Bytes of a PNG's chunk beside its data: length, kind, checksum."""
JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of segments that tell the size


class BadImage(ValueError):
    """These bytes or this array cannot be used as a picture."""


def decode_image(data: bytes) -> Image:
    """Decodes a picture file (JPEG, PNG, PGM, …), and turns it upright if it says how it was held."""
    if not data:
        raise BadImage("empty picture")
    if data.startswith(JPEG_START):
        _check_jpeg(data)
    elif data.startswith(PNG_START):
        _check_png(data)
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise BadImage(f"cannot decode the picture: {error.err}") from error
    if image is None:
        raise BadImage("not a picture that OpenCV can decode")
    return to_bgr(image)


def _check_jpeg(data: bytes) -> None:
    """Rejects damaged files: OpenCV takes half a JPEG for a whole one and paints the rest grey, and allocates
    gigabytes if a damaged header says so.
    """
    if JPEG_END not in data:
        raise BadImage("JPEG is cut short")
    at = len(JPEG_START)
    while at + 9 <= len(data) and data[at] == 0xFF:
        if data[at + 1] in JPEG_SIZES:
            height, width = int.from_bytes(data[at + 5 : at + 7]), int.from_bytes(data[at + 7 : at + 9])
            if not 0 < width * height <= MAX_PIXELS:
                raise BadImage(f"JPEG of {width} × {height} pixels")
            return
        at += 2 + int.from_bytes(data[at + 2 : at + 4])
    raise BadImage("JPEG without a size")


def _check_png(data: bytes) -> None:
    """Rejects damaged files: OpenCV allocates what a chunk claims to be long, up to gigabytes."""
    at, kind = len(PNG_START), b""
    while kind != PNG_END:
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        if at + PNG_AROUND + length > len(data):
            raise BadImage("PNG is cut short")
        if at == len(PNG_START):
            width, height = int.from_bytes(data[at + 8 : at + 12]), int.from_bytes(data[at + 12 : at + 16])
            if kind != b"IHDR" or length < 8 or not 0 < width * height <= MAX_PIXELS:
                raise BadImage("PNG without a usable size")
        at += PNG_AROUND + length


def encode_jpeg(image: Image, quality: int = 80) -> bytes:
    return _encode(image, ".jpg", (cv2.IMWRITE_JPEG_QUALITY, quality))


def encode_png(image: Image) -> bytes:
    return _encode(image, ".png", ())


def _encode(image: Image, extension: str, options: tuple[int, ...]) -> bytes:
    if image.size == 0:
        raise BadImage("picture of size zero")
    try:
        done, encoded = cv2.imencode(extension, image, options)
    except cv2.error as error:
        raise BadImage(f"cannot encode the picture: {error.err}") from error
    if not done:
        raise BadImage("OpenCV cannot encode the picture")
    return encoded.tobytes()


def to_bgr(array: NDArray[Any]) -> Image:
    """Converts grey, BGRA and 16-bit pictures to 8-bit BGR. Raises BadImage for anything else."""
    if array.ndim not in (2, 3) or array.size == 0:
        raise BadImage(f"picture of shape {array.shape}")
    if array.dtype == np.uint16:
        array = (array >> 8).astype(np.uint8)
    if array.dtype != np.uint8:
        raise BadImage(f"pixels of type {array.dtype}")
    channels = 1 if array.ndim == 2 else array.shape[2]
    if channels == 3:
        return np.ascontiguousarray(array)
    if channels == 1:
        return cv2.cvtColor(array, cv2.COLOR_GRAY2BGR).astype(np.uint8, copy=False)
    if channels == 4:
        return cv2.cvtColor(array, cv2.COLOR_BGRA2BGR).astype(np.uint8, copy=False)
    raise BadImage(f"picture with {channels} channels")


def fit(image: Image, smallest: int, largest: int) -> Image:
    """Scales the picture so that its longer side is between the two: photographs from a phone are too large
    to search for faces, passport pictures too small.
    """
    longer = max(image.shape[:2])
    wanted = min(max(longer, smallest), largest)
    if wanted == longer:
        return image
    way = cv2.INTER_AREA if wanted < longer else cv2.INTER_CUBIC
    height, width = (max(1, round(side * wanted / longer)) for side in image.shape[:2])
    return cv2.resize(image, (width, height), interpolation=way).astype(np.uint8, copy=False)
