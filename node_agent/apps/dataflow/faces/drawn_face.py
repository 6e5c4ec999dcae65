"""Draws a face: a pure function of the person's name and the number of the picture."""

import random

import cv2
import numpy as np
from numpy.typing import NDArray

_FINE = 4  # drawn larger and made small, so that edges are soft


def drawn_face(name: str, number: int, width: int, height: int) -> NDArray[np.uint8]:
    """Draws a person. Looks follow from the name; head and mood differ from picture to picture."""
    who = random.Random(f"face/{name}")
    mood = random.Random(f"face/{name}/{number}")
    w, h = width * _FINE, height * _FINE
    skin = who.uniform(0.55, 1.0)
    colour = np.array([150, 180, 225]) * skin
    hair = tuple(who.choice(((25, 25, 30), (30, 50, 80), (60, 110, 150), (120, 120, 120))))
    image = np.full((h, w, 3), who.randint(60, 160), np.uint8)
    cx = w // 2 + mood.randint(-w // 40, w // 40)
    cy = round(h * 0.56) + mood.randint(-h // 60, h // 60)
    rx, ry = round(w * who.uniform(0.32, 0.37)), round(h * who.uniform(0.36, 0.40))

    def ellipse(
        x: float, y: float, a: float, b: float, fill: object, start: int = 0, end: int = 360, line: int = -1
    ) -> None:
        centre, axes = (round(x), round(y)), (max(1, round(a)), max(1, round(b)))
        shade = tuple(float(part) for part in np.asarray(fill).ravel())
        cv2.ellipse(image, centre, axes, 0, start, end, shade, line, cv2.LINE_AA)

    ellipse(cx, h * 1.10, w * 0.48, h * 0.20, colour * 0.4)
    ellipse(cx, cy + ry * 0.9, rx * 0.5, ry * 0.5, colour * 0.8)
    ellipse(cx, cy - ry * 0.25, rx * 1.13, ry * 0.95, hair)
    ellipse(cx, cy, rx, ry, colour)
    ellipse(cx + rx * 0.45, cy, rx * 0.5, ry * 0.8, colour * 0.94)
    ellipse(cx, cy - ry * 0.98, rx * 0.95, ry * who.uniform(0.25, 0.42), hair)

    eye_y, apart = cy - ry * 0.15, rx * who.uniform(0.40, 0.48)
    eye_w, eye_h = rx * who.uniform(0.17, 0.22), ry * who.uniform(0.06, 0.085)
    brow, look = ry * who.uniform(0.03, 0.06), rx * mood.uniform(-0.05, 0.05)
    glasses = who.random() < 0.3
    for side in (-1, 1):
        x = cx + side * apart
        ellipse(x, eye_y, eye_w * 1.5, eye_h * 2.0, colour * 0.82)
        ellipse(x, eye_y, eye_w, eye_h, (235, 235, 235))
        ellipse(x + look, eye_y, eye_h * 1.05, eye_h * 1.05, (40, 40, 40))
        ellipse(x, eye_y - eye_h, eye_w * 1.1, eye_h * 0.5, colour * 0.45)
        ellipse(x, eye_y - eye_h * 3.0, eye_w * 1.5, brow, hair)
        if glasses:
            ellipse(x, eye_y, eye_w * 1.8, eye_h * 3.0, (30, 30, 30), line=_FINE)
    nose = rx * who.uniform(0.13, 0.20)
    ellipse(cx + nose * 0.5, cy + ry * 0.08, nose * 0.5, ry * 0.22, colour * 0.86)
    ellipse(cx, cy + ry * 0.26, nose * 1.2, ry * 0.06, colour * 0.72)
    for side in (-1, 1):
        ellipse(cx + side * nose * 0.6, cy + ry * 0.28, nose * 0.35, ry * 0.03, colour * 0.35)
    mouth = rx * who.uniform(0.33, 0.45)
    open_by = ry * mood.uniform(0.035, 0.08)
    ellipse(cx, cy + ry * 0.54, mouth, open_by + ry * 0.02, (90, 90, 170 * skin))
    ellipse(cx, cy + ry * 0.54, mouth * 0.95, open_by * 0.35, (40, 30, 70))
    ellipse(cx, cy + ry * 0.68, mouth * 0.6, ry * 0.03, colour * 0.8)
    if who.random() < 0.3:
        ellipse(cx, cy + ry * 0.42, mouth * 1.1, ry * 0.05, hair)

    light = mood.uniform(0.9, 1.1)
    small = cv2.resize(
        cv2.GaussianBlur(image, (0, 0), _FINE * 0.6), (width, height), interpolation=cv2.INTER_AREA
    )
    lit: NDArray[np.uint8] = np.clip(small.astype(np.float32) * light, 0, 255).astype(np.uint8)
    return lit
