"""The parameters of a radio (physical layer) and of its MAC, as frozen values that refuse impossible ones."""

import math
from dataclasses import dataclass

from orchestrator.errors import BadInput
from orchestrator.model.path_loss import PathLoss
from orchestrator.radio.reception import Reception, check_rate
from orchestrator.radio.units_db import noise_floor_dbm

_MOST_DBM = 60.0
_LEAST_DBM = -200.0


@dataclass(frozen=True)
class Radio:
    """One kind of transceiver and its channel; all nodes share it.

    A frame weaker than ``sensitivity_dbm`` is never decoded. One at or above ``carrier_sense_dbm`` makes the
    medium busy. A receiver locks on to a frame whose preamble has ``preamble_sinr_db``. Once locked, it
    changes to a later frame only if that is ``capture_db`` stronger (None: never).
    """

    path_loss: PathLoss
    reception: Reception
    tx_power_dbm: float
    antenna_gain_dbi: float = 0.0
    noise_figure_db: float = 4.0
    bandwidth_hz: float = 1e6
    sensitivity_dbm: float | None = None
    carrier_sense_dbm: float | None = None
    preamble_sinr_db: float = -4.0
    capture_db: float | None = None

    def __post_init__(self) -> None:
        _within("tx_power_dbm", self.tx_power_dbm, _LEAST_DBM, _MOST_DBM, "dBm")
        _within("antenna_gain_dbi", self.antenna_gain_dbi, -60, 60, "dBi")
        _within("noise_figure_db", self.noise_figure_db, 0, 60, "dB")
        _within("bandwidth_hz", self.bandwidth_hz, 1.0, 1e12, "Hz")
        _within("preamble_sinr_db", self.preamble_sinr_db, -60, 60, "dB")
        for name in ("sensitivity_dbm", "carrier_sense_dbm"):
            if (value := getattr(self, name)) is not None:
                _within(name, value, _LEAST_DBM, _MOST_DBM, "dBm")
        if self.capture_db is not None:
            _within("capture_db", self.capture_db, 0, 100, "dB")

    @property
    def noise_dbm(self) -> float:
        return noise_floor_dbm(self.noise_figure_db, self.bandwidth_hz)

    @property
    def decode_threshold_dbm(self) -> float:
        return self.noise_dbm if self.sensitivity_dbm is None else self.sensitivity_dbm

    @property
    def busy_threshold_dbm(self) -> float:
        return self.decode_threshold_dbm if self.carrier_sense_dbm is None else self.carrier_sense_dbm


@dataclass(frozen=True)
class Mac:
    """802.11b DCF. Rates in Mb/s, times in microseconds, contention windows as 2^n - 1."""

    unicast_rate: float = 11.0
    broadcast_rate: float = 11.0
    control_rate: float = 11.0
    short_preamble: bool = False
    attempts: int = 7
    rts_from_bytes: int | None = None
    queue_limit: int = 100
    slot_us: int = 20
    sifs_us: int = 10
    cw_min: int = 31
    cw_max: int = 1023

    def __post_init__(self) -> None:
        for rate in (self.unicast_rate, self.broadcast_rate, self.control_rate):
            check_rate(rate)
        _within("attempts", self.attempts, 1, 255, "transmissions")
        _within("queue_limit", self.queue_limit, 1, 1_000_000, "frames")
        _within("slot_us", self.slot_us, 1, 1000, "µs")
        _within("sifs_us", self.sifs_us, 1, 1000, "µs")
        _within("cw_min", self.cw_min, 1, 32767, "slots")
        _within("cw_max", self.cw_max, self.cw_min, 32767, "slots")
        if self.rts_from_bytes is not None:
            _within("rts_from_bytes", self.rts_from_bytes, 0, 65535, "bytes")


def _within(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not math.isfinite(value) or not low <= value <= high:
        raise BadInput(f"{name} must be between {low:g} and {high:g} {unit}, not {value:g}")
