"""Computes how likely a frame is decoded, from its rate, its length and the SINR.

Both models follow ``p(length) = p(1 byte) ^ length``. So a curve maps the SINR to the logarithm of the
success probability per byte, and a frame that is disturbed for part of its time is a sum of such terms.
"""

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from orchestrator.errors import BadInput
from orchestrator.model.rates import RATES

_STEPS_PER_DB = 100
_ROUNDING = 1e-6


def check_rate(rate: float) -> float:
    if rate not in RATES:
        raise BadInput(f"{rate:g} Mb/s is not a rate of 802.11b: choose one of 1, 2, 5.5 and 11 Mb/s")
    return float(rate)


class Reception:
    """Success curves by rate. An Ethernet frame's size plus ``counted_overhead`` is the length they count."""

    def __init__(self, curves: Mapping[float, "Curve"], counted_overhead: int) -> None:
        self.curves = dict(curves)
        self.counted_overhead = counted_overhead

    def probability(self, rate: float, size: int, sinr_db: float) -> float:
        """Returns the success probability of an Ethernet frame of ``size`` bytes at a constant SINR."""
        return math.exp(self.curves[check_rate(rate)].ln_per_byte(sinr_db) * (size + self.counted_overhead))


class Curve:
    """Maps SINR to ln(success probability) per byte in steps of 0.01 dB: 0 above the table, -inf below it."""

    def __init__(self, lowest_db: float, ln_per_byte: npt.NDArray[np.float64]) -> None:
        self._lowest_db = lowest_db
        self._table = np.concatenate(([-np.inf], ln_per_byte, [0.0]))
        self._steps: list[float] = ln_per_byte.tolist()
        self._end = len(self._steps)

    def ln_per_byte(self, sinr_db: float) -> float:
        position = (sinr_db - self._lowest_db) * _STEPS_PER_DB + _ROUNDING
        if position >= self._end:
            return 0.0
        return self._steps[int(position)] if position >= 0 else -math.inf

    def ln_per_byte_matrix(self, sinr_db: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        position = (sinr_db - self._lowest_db) * _STEPS_PER_DB + _ROUNDING
        index = np.clip(np.floor(position) + 1, 0, len(self._table) - 1).astype(np.int64)
        return np.asarray(self._table[index], dtype=np.float64)


_EMANE_REFERENCE_BYTES = 128
# Reception in % of 128-byte frames at whole decibels from the first column on, by EMANE's 802.11 model.
_EMANE_PERCENT: dict[float, tuple[int, tuple[float, ...]]] = {
    1.0: (-9, (0, 1.4, 21, 63.5, 90.7, 98.6, 99.9, 100)),
    2.0: (-6, (0, 1.4, 20.6, 63.1, 90.5, 98.5, 99.9, 100)),
    5.5: (-2, (0, 0.2, 9.1, 46.2, 82.8, 96.7, 99.6, 100)),
    11.0: (1, (0, 0.2, 8.9, 45.8, 82.5, 96.7, 99.6, 100)),
}


@cache
def emane_reception() -> Reception:
    """Returns EMANE's curves: linear between the rows; the length is that of the Ethernet frame."""
    curves = {}
    for rate, (lowest, percent) in _EMANE_PERCENT.items():
        rows = np.arange(len(percent), dtype=np.float64)
        grid = np.arange((len(percent) - 1) * _STEPS_PER_DB) / _STEPS_PER_DB
        with np.errstate(divide="ignore"):
            ln = np.log(np.interp(grid, rows, percent) / 100.0) / _EMANE_REFERENCE_BYTES
        curves[rate] = Curve(float(lowest), ln)
    return Reception(curves, counted_overhead=0)


_DSSS_BANDWIDTH = 22e6
_DSSS_GRID_DB = np.arange(-12.0, 16.0, 0.25)
_CCK_GAIN = 22e6 / 1.375e6  # bandwidth over symbol rate
_NEGLIGIBLE = 1e-13


@cache
def dsss_reception(counted_overhead: int) -> Reception:
    """Returns the textbook error rates of DBPSK, DQPSK and CCK in white noise over 22 MHz, which ns-3 also
    uses.
    """
    sinr = 10.0 ** (_DSSS_GRID_DB / 10.0)
    return Reception(
        {
            1.0: _tabulated(8 * np.log1p(-np.minimum(0.5 * np.exp(-sinr * _DSSS_BANDWIDTH / 1e6), 0.5))),
            2.0: _tabulated(8 * np.log1p(-_dqpsk_bit_error(sinr * _DSSS_BANDWIDTH / 1e6 / 2))),
            5.5: _tabulated(2 * _ln_biorthogonal8(sinr * _CCK_GAIN / 2)),
            11.0: _tabulated(2 * _ln_biorthogonal8(sinr * _CCK_GAIN / 4)),
        },
        counted_overhead,
    )


def _dqpsk_bit_error(eb_n0: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    root = math.sqrt(2.0)
    tail = np.exp(-(2.0 - root) * eb_n0) / np.sqrt(eb_n0)
    return np.minimum((root + 1.0) / math.sqrt(8.0 * math.pi * root) * tail, 0.5)


def _ln_biorthogonal8(energy: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns ln P(a symbol of a 16-ary biorthogonal set is right):
    ∫ (2Φ(x+β)-1)⁷ φ(x) dx from -β, β=√(2E).
    """
    result = []
    for e in energy:
        beta = math.sqrt(2.0 * e)
        x = np.linspace(max(-beta, -9.0), 9.0, 601)
        inner = np.array([math.erf((v + beta) / math.sqrt(2.0)) for v in x])
        missing = np.trapezoid((1.0 - inner**7) * np.exp(-x * x / 2.0), x) / math.sqrt(2.0 * math.pi)
        missing += 0.5 * math.erfc(-x[0] / math.sqrt(2.0))
        result.append(math.log1p(-min(missing, 1.0 - 1e-12)))
    return np.array(result)


def _tabulated(ln_per_byte: npt.NDArray[np.float64]) -> Curve:
    """Builds a table by interpolating log(-ln p), which is nearly a straight line where p matters."""
    grid = np.arange(_DSSS_GRID_DB[0], _DSSS_GRID_DB[-1], 1.0 / _STEPS_PER_DB)
    fine = -np.exp(np.interp(grid, _DSSS_GRID_DB, np.log(np.maximum(-ln_per_byte, _NEGLIGIBLE))))
    return Curve(float(grid[0]), np.where(fine > -10 * _NEGLIGIBLE, 0.0, fine))
