"""Whatever a file or camera brings becomes 8-bit BGR, or one typed error."""

import contextlib
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces.pixels import (
    BadImage,
    Image,
    decode_image,
    encode_jpeg,
    encode_png,
    fit,
    to_bgr,
)


def picture(height: int = 48, width: int = 64) -> Image:
    down, right = np.mgrid[0:height, 0:width]
    return np.stack([down * 3 % 256, right * 2 % 256, (down + right) % 256], axis=2).astype(np.uint8)


def png(array: NDArray[Any]) -> bytes:
    done, encoded = cv2.imencode(".png", array)
    assert done
    return encoded.tobytes()


def test_png_keeps_every_pixel_and_jpeg_nearly() -> None:
    image = picture()
    assert np.array_equal(decode_image(encode_png(image)), image)
    lossy = decode_image(encode_jpeg(image, 95)).astype(int)
    assert np.abs(lossy - image).mean() < 4


def test_lower_quality_is_smaller() -> None:
    assert len(encode_jpeg(picture(), 30)) < len(encode_jpeg(picture(), 90))


def test_every_colour_space_becomes_bgr() -> None:
    image = picture()
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    assert np.array_equal(decode_image(png(grey))[:, :, 1], grey)
    assert np.array_equal(to_bgr(grey[:, :, None])[:, :, 2], grey)
    with_alpha = np.dstack([image, np.full(grey.shape, 7, np.uint8)])
    assert np.array_equal(decode_image(png(with_alpha)), image)
    assert np.array_equal(to_bgr(with_alpha), image)
    deep = image.astype(np.uint16) << 8
    assert np.array_equal(to_bgr(deep), image)
    assert decode_image(png(deep)).dtype == np.uint8


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros(5),
    ],
    ids=["empty", "two channels", "floats", "a line"],
)
def test_arrays_that_are_no_picture_are_refused(array: NDArray[Any]) -> None:
    with pytest.raises(BadImage):
        to_bgr(array)


def with_size(jpeg: bytes, height: int, width: int) -> bytes:
    at = jpeg.index(b"\xff\xc0") + 5
    return jpeg[:at] + height.to_bytes(2) + width.to_bytes(2) + jpeg[at + 4 :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda jpeg: b"", "empty"),
        (lambda jpeg: b"hello", "not a picture"),
        (lambda jpeg: jpeg[: len(jpeg) // 2], "cut short"),
        (lambda jpeg: jpeg[:2] + jpeg[-2:], "without a size"),
        (lambda jpeg: jpeg[:3] + b"\x00" * 50 + jpeg[-2:], "without a size"),
        (lambda jpeg: with_size(jpeg, 0, 64), "64 × 0 pixels"),
        (lambda jpeg: with_size(jpeg, 0x7FFF, 0x7FFF), "32767 × 32767 pixels"),
    ],
)
def test_damaged_files_are_refused_with_a_reason(damage: Any, reason: str) -> None:
    with pytest.raises(BadImage, match=reason):
        decode_image(damage(encode_jpeg(picture())))


def test_any_damage_is_a_typed_error_or_a_picture() -> None:
    jpeg = encode_jpeg(picture())
    for at in range(0, len(jpeg), 7):
        damaged = bytearray(jpeg)
        damaged[at] ^= 0x55
        with contextlib.suppress(BadImage):
            assert decode_image(bytes(damaged)).ndim == 3


def test_a_picture_of_size_zero_cannot_be_encoded() -> None:
    with pytest.raises(BadImage, match="size zero"):
        encode_jpeg(np.zeros((0, 0, 3), np.uint8))


def test_fit_scales_only_what_is_too_small_or_too_large() -> None:
    image = picture(48, 64)
    assert fit(image, 32, 100) is image
    assert fit(image, 128, 500).shape == (96, 128, 3)
    assert fit(image, 8, 32).shape == (24, 32, 3)
    assert fit(picture(4, 4000)[:1], 8, 100).shape == (1, 100, 3)
