"""LBPH: codes of known patterns, independence of light, and a distance between 0 and 1."""

import numpy as np
import pytest
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces.lbph import BINS, CELL, GRID, LENGTH, PATTERNS, SIDE, distances, histogram


def noise(seed: int, top: int = 256) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, top, (SIDE, SIDE), dtype=np.uint8)


def cells(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return histogram(grey).reshape(GRID * GRID, PATTERNS)


def test_there_are_58_uniform_patterns_and_one_bin_for_the_rest() -> None:
    assert PATTERNS == 59
    assert BINS[0b00001110] != BINS[0b00011100] != PATTERNS - 1
    assert BINS[0b01010101] == BINS[0b00100100] == PATTERNS - 1


def test_every_pixel_is_in_one_bin_of_its_cell() -> None:
    assert cells(noise(1)).sum(axis=1).tolist() == [CELL * CELL] * GRID * GRID


def test_a_flat_face_has_one_pattern() -> None:
    """All neighbours are as bright as the pixel itself."""
    assert (cells(np.full((SIDE, SIDE), 80, np.uint8))[:, BINS[0xFF]] == CELL * CELL).all()


def test_a_bright_spot_shows_in_its_own_cell_only() -> None:
    grey = np.zeros((SIDE, SIDE), np.uint8)
    grey[1 + 3, 1 + CELL + 3] = 255  # first row of cells, second column
    spot = cells(grey)
    assert spot[1, BINS[0]] == 1, "darker all around"
    assert spot[1, BINS[0xFF]] == CELL * CELL - 1
    assert (np.delete(spot, 1, axis=0)[:, BINS[0xFF]] == CELL * CELL).all()


def test_light_and_contrast_make_no_difference() -> None:
    grey = noise(2, top=100)
    assert np.array_equal(histogram(grey), histogram(2 * grey + 30))


def test_distance_is_zero_to_itself_one_to_the_opposite_and_the_same_both_ways() -> None:
    flat, one, other = (histogram(grey) for grey in (np.zeros((SIDE, SIDE), np.uint8), noise(3), noise(4)))
    rows = np.stack([one, other, flat])
    to_one = distances(one, rows)
    assert to_one[0] == 0 and 0 < to_one[1] < to_one[2] <= 1
    assert distances(other, rows)[0] == to_one[1]
    apart = flat.copy().reshape(-1, PATTERNS)[:, ::-1].ravel()
    assert distances(flat, np.stack([apart]))[0] == pytest.approx(1)
    assert distances(one, np.empty((0, LENGTH), np.uint8)).shape == (0,)


def test_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="66 × 66"):
        histogram(np.zeros((64, 64), np.uint8))
