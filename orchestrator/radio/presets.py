"""Named radios: EMANE at the paper's setting, and the two regimes that the ns-3 reference was taken under."""

from orchestrator.errors import BadInput
from orchestrator.radio.airtime import DOT11_OVERHEAD
from orchestrator.radio.pathloss import RangeDisc, TwoRay, TwoRayGround, loss_at
from orchestrator.radio.reception import dsss_reception, emane_reception
from orchestrator.radio.settings import Radio


def seed_80211b(antenna_height_m: float = 2.0) -> Radio:
    """EMANE's 802.11 model at -10 dBm over two-ray ground: noise floor and sensitivity -110 dBm.

    EMANE has no carrier sense; here whatever could be decoded at all keeps others silent. Its frames do not
    compete for a receiver either: a frame 10 dB stronger takes over here, as common chip sets do it.
    """
    return Radio(
        path_loss=TwoRay(antenna_height_m),
        reception=emane_reception(),
        tx_power_dbm=-10.0,
        noise_figure_db=4.0,
        bandwidth_hz=1e6,
        preamble_sinr_db=-4.0,
        capture_db=10.0,
    )


def ns3_range(range_m: float = 250.0) -> Radio:
    """Decoding, carrier sense and interference end at ``range_m``; equal powers, so nothing is captured."""
    return Radio(
        path_loss=RangeDisc(range_m),
        reception=dsss_reception(DOT11_OVERHEAD),
        tx_power_dbm=16.02,
        noise_figure_db=7.0,
        bandwidth_hz=22e6,
        sensitivity_dbm=-82.0,
        preamble_sinr_db=4.0,
    )


def ns3_two_ray(decode_m: float = 250.0, sense_m: float = 550.0) -> Radio:
    """The WaveLAN card of ns-2: decodes up to 250 m, senses up to 550 m, captures by SINR."""
    path_loss = TwoRayGround(frequency_hz=914e6, antenna_height_m=1.5)
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
