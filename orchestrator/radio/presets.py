"""Named radios: EMANE at the paper's setting, and the two settings of the ns-3 reference."""

from typing import Any

from orchestrator.errors import BadInput
from orchestrator.radio.airtime import DOT11_OVERHEAD
from orchestrator.radio.path_loss.base import loss_at
from orchestrator.radio.path_loss.range import RangeLoss
from orchestrator.radio.path_loss.two_ray import TwoRayLoss
from orchestrator.radio.path_loss.two_ray_ground import TwoRayGroundLoss
from orchestrator.radio.reception import dsss_reception, emane_reception
from orchestrator.radio.settings import Mac, Radio

_MBPS = 1e6


def seed_80211b(antenna_height_m: float = 2.0) -> Radio:
    """Returns EMANE's 802.11 model at -10 dBm over two-ray ground: noise floor and sensitivity -110 dBm.

    Two differences: EMANE has no carrier sense; here every frame that could be decoded makes the medium busy.
    In EMANE frames do not compete for a receiver; here a frame that is 10 dB stronger takes over, as in
    common chip sets.
    """
    return Radio(
        path_loss=TwoRayLoss(antenna_height_m),
        reception=emane_reception(),
        tx_power_dbm=-10.0,
        noise_figure_db=4.0,
        bandwidth_hz=1e6,
        preamble_sinr_db=-4.0,
        capture_db=10.0,
    )


def ns3_range(range_m: float = 250.0) -> Radio:
    """Returns a radio whose decoding, carrier sense and interference end at ``range_m``. Powers are equal, so
    it captures nothing.
    """
    return Radio(
        path_loss=RangeLoss(range_m),
        reception=dsss_reception(DOT11_OVERHEAD),
        tx_power_dbm=16.02,
        noise_figure_db=7.0,
        bandwidth_hz=22e6,
        sensitivity_dbm=-82.0,
        preamble_sinr_db=4.0,
    )


def ns3_two_ray(decode_m: float = 250.0, sense_m: float = 550.0) -> Radio:
    """Returns the WaveLAN card of ns-2: decodes up to 250 m, senses up to 550 m, captures by SINR."""
    path_loss = TwoRayGroundLoss(frequency_hz=914e6, antenna_height_m=1.5)
    tx_power_dbm = 24.5
    return Radio(
        path_loss=path_loss,
        reception=dsss_reception(DOT11_OVERHEAD),
        tx_power_dbm=tx_power_dbm,
        noise_figure_db=7.0,
        bandwidth_hz=22e6,
        sensitivity_dbm=tx_power_dbm - loss_at(path_loss, decode_m),
        carrier_sense_dbm=tx_power_dbm - loss_at(path_loss, sense_m),
        preamble_sinr_db=4.0,
    )


PRESETS = {"seed-80211b": seed_80211b, "ns3-range": ns3_range, "ns3-two-ray": ns3_two_ray}
DEFAULT_PRESET = "seed-80211b"


def radio_preset(name: str) -> Radio:
    if name not in PRESETS:
        raise BadInput(f'there is no radio "{name}": choose one of {", ".join(sorted(PRESETS))}')
    return PRESETS[name]()


def seed_80211b_section() -> dict[str, Any]:
    return section_of("seed-80211b", seed_80211b(), {"model": "two_ray", "antenna_height": 2.0})


def ns3_range_section() -> dict[str, Any]:
    return section_of("ns3-range", ns3_range(), {"model": "range", "range": 250.0})


def ns3_two_ray_section() -> dict[str, Any]:
    path_loss = {"model": "two_ray_ground", "frequency": 914e6, "antenna_height": 1.5}
    return section_of("ns3-two-ray", ns3_two_ray(), path_loss)


def section_of(name: str, radio: Radio, path_loss: dict[str, Any]) -> dict[str, Any]:
    """Returns a preset as the section of a topology file that states the same values without naming it."""
    mac = Mac()
    return {
        "model": "80211b",
        "preset": name,
        "tx_power": radio.tx_power_dbm,
        "antenna_gain": radio.antenna_gain_dbi,
        "pathloss": path_loss,
        "rate": mac.unicast_rate * _MBPS,
        "broadcast_rate": mac.broadcast_rate * _MBPS,
        "control_rate": mac.control_rate * _MBPS,
        "preamble": "short" if mac.short_preamble else "long",
        "retries": mac.attempts,
        "queue": mac.queue_limit,
        "rts": "off" if mac.rts_from_bytes is None else mac.rts_from_bytes,
        "receiver": {
            "reception": "emane" if radio.reception is emane_reception() else "dsss",
            "noise_figure": radio.noise_figure_db,
            "noise_bandwidth": radio.bandwidth_hz,
            "sensitivity": "noise_floor" if radio.sensitivity_dbm is None else radio.sensitivity_dbm,
            "carrier_sense": "sensitivity" if radio.carrier_sense_dbm is None else radio.carrier_sense_dbm,
            "preamble_sinr": radio.preamble_sinr_db,
            "capture": "off" if radio.capture_db is None else radio.capture_db,
        },
        "contention": {
            "slot": mac.slot_us / 1e6,
            "sifs": mac.sifs_us / 1e6,
            "cw_min": mac.cw_min,
            "cw_max": mac.cw_max,
        },
    }
