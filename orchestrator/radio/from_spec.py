"""From a topology's ``radio`` section to the settings of the model, and from a preset to such a section.

The one place where names and units of the files meet those of the model.
"""

from dataclasses import asdict
from typing import Any, NamedTuple

from orchestrator.radio.choice import PATH_LOSSES, PathLossChoice, RadioChoice
from orchestrator.radio.presets import radio_preset
from orchestrator.radio.reception import emane_reception
from orchestrator.radio.settings import Mac
from orchestrator.spec.pathloss import LossTrace, Matrix, PathLoss
from orchestrator.spec.radio import DiscRadio, Radio80211b, RadioSection
from orchestrator.spec.topology import Topology

_MBPS = 1e6
_US = 1e-6
# Keys of a path loss section, and what the model calls them.
_ARGUMENTS = {
    "antenna_height": "antenna_height_m",
    "frequency": "frequency_hz",
    "exponent": "exponent",
    "reference_loss": "reference_loss_db",
    "reference_distance": "reference_m",
    "range": "range_m",
}


class AirSettings(NamedTuple):
    radio: RadioChoice
    mac: Mac


def air_settings(topology: Topology) -> AirSettings:
    """As 802.11b: for a disc, that is a radio heard up to its range, which sends everything at one rate."""
    section: RadioSection = topology.radio
    match section:
        case DiscRadio():
            rate = section.bandwidth / _MBPS
            mac = Mac(unicast_rate=rate, broadcast_rate=rate, control_rate=rate)
            return AirSettings(RadioChoice("ns3-range", {"range_m": section.range}), mac)
        case Radio80211b():
            return AirSettings(_radio(section, topology.node_names), _mac(section))


def _radio(section: Radio80211b, nodes: tuple[str, ...]) -> RadioChoice:
    receiver = section.receiver
    return RadioChoice(
        preset=section.preset,
        overrides={
            "tx_power_dbm": section.tx_power,
            "antenna_gain_dbi": section.antenna_gain,
            "noise_figure_db": receiver.noise_figure,
            "bandwidth_hz": receiver.noise_bandwidth,
            "sensitivity_dbm": None if receiver.sensitivity == "noise_floor" else receiver.sensitivity,
            "carrier_sense_dbm": None if receiver.carrier_sense == "sensitivity" else receiver.carrier_sense,
            "preamble_sinr_db": receiver.preamble_sinr,
            "capture_db": None if receiver.capture == "off" else receiver.capture,
        },
        path_loss=_path_loss(section.pathloss, nodes),
        reception=receiver.reception,
    )


def _path_loss(section: PathLoss, nodes: tuple[str, ...]) -> PathLossChoice:
    if isinstance(section, Matrix):
        return PathLossChoice(section.model, matrix=section.rows(nodes))
    if isinstance(section, LossTrace):
        return PathLossChoice(section.model, nodes=len(nodes), changes=list(section.changes(nodes)))
    values = section.model_dump(exclude={"model"})
    return PathLossChoice(section.model, {_ARGUMENTS[key]: value for key, value in values.items()})


def _mac(section: Radio80211b) -> Mac:
    contention = section.contention
    return Mac(
        unicast_rate=section.rate / _MBPS,
        broadcast_rate=section.broadcast_rate / _MBPS,
        control_rate=section.control_rate / _MBPS,
        short_preamble=section.preamble == "short",
        attempts=section.retries,
        rts_from_bytes=None if section.rts == "off" else section.rts,
        queue_limit=section.queue,
        slot_us=round(contention.slot / _US),
        sifs_us=round(contention.sifs / _US),
        cw_min=contention.cw_min,
        cw_max=contention.cw_max,
    )


def preset_section(name: str) -> dict[str, Any]:
    """A preset as the file that says the same without naming it."""
    radio, mac = radio_preset(name), Mac()
    return {
        "model": "80211b",
        "preset": name,
        "tx_power": radio.tx_power_dbm,
        "antenna_gain": radio.antenna_gain_dbi,
        "pathloss": _path_loss_section(radio.path_loss),
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


def _path_loss_section(model: Any) -> dict[str, Any]:
    (name,) = (name for name, kind in PATH_LOSSES.items() if type(model) is kind)
    keys = {argument: key for key, argument in _ARGUMENTS.items()}
    return {"model": name, **{keys[argument]: value for argument, value in asdict(model).items()}}
