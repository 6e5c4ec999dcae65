"""Converts between milliwatts and dBm, and computes the noise floor."""

import math

THERMAL_NOISE_DBM_PER_HZ = -174.0


def dbm_to_mw(dbm: float) -> float:
    return float(10.0 ** (dbm / 10.0))


def mw_to_dbm(milliwatts: float) -> float:
    return 10.0 * math.log10(milliwatts) if milliwatts > 0 else -math.inf


def noise_floor_dbm(noise_figure_db: float, bandwidth_hz: float) -> float:
    return THERMAL_NOISE_DBM_PER_HZ + noise_figure_db + 10.0 * math.log10(bandwidth_hz)
