"""Local binary pattern histograms (Ahonen et al. 2006), the recogniser of the paper's prototype.

Each pixel is coded by which of its 8 neighbours are at least as bright; a face is the histograms of these
codes in 8 × 8 cells, and two faces are compared by chi-square. Written out here because ``cv2.face`` comes
only with a build of OpenCV that clashes with the one the detector needs.
"""

import numpy as np
from numpy.typing import NDArray

GRID, CELL = 8, 8
SIDE = GRID * CELL + 2  # a code needs its neighbours: the outermost pixels have none
NEIGHBOURS = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))

Histogram = NDArray[np.uint8]  # pixels of each pattern in each cell, flat; a cell has fewer than 256 pixels


def _uniform() -> NDArray[np.intp]:
    """The bin of each code. Codes that change between dark and bright at most twice around the circle have a
    bin each, the noisy rest shares one."""
    codes = range(256)
    turns = [(code ^ (code >> 1 | (code & 1) << 7)).bit_count() for code in codes]
    own = [code for code in codes if turns[code] <= 2]
    bins = np.full(256, len(own), np.intp)
    bins[own] = np.arange(len(own))
    return bins


BINS = _uniform()
PATTERNS = int(BINS.max()) + 1
LENGTH = GRID * GRID * PATTERNS


def histogram(grey: NDArray[np.uint8]) -> Histogram:
    """Of an aligned grey face of SIDE × SIDE pixels."""
    if grey.shape != (SIDE, SIDE):
        raise ValueError(f"a face of {SIDE} × {SIDE} pixels is needed, not {grey.shape}")
    inner = slice(1, -1)
    code = np.zeros((SIDE - 2, SIDE - 2), np.uint8)
    for bit, (down, right) in enumerate(NEIGHBOURS):
        neighbour = grey[down : down + SIDE - 2, right : right + SIDE - 2]
        code |= (neighbour >= grey[inner, inner]).astype(np.uint8) << np.uint8(bit)
    cells = BINS[code].reshape(GRID, CELL, GRID, CELL).swapaxes(1, 2).reshape(GRID * GRID, CELL * CELL)
    numbered = cells + PATTERNS * np.arange(GRID * GRID)[:, None]
    return np.bincount(numbered.ravel(), minlength=LENGTH).astype(np.uint8)


def distances(one: Histogram, others: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Chi-square between one histogram and each of several (a row each), scaled to 0 … 1."""
    ours, theirs = one.astype(np.float32), others.astype(np.float32)
    both = np.maximum(ours + theirs, 1)  # counts: where both have none, their difference is none, too
    pixels = 2 * GRID * GRID * CELL * CELL
    return np.asarray(((ours - theirs) ** 2 / both).sum(axis=1) / pixels, np.float32)
