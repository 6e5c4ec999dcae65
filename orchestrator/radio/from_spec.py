"""Translates a topology's ``radio`` section into settings of the model.

Only this module and ``presets`` know the names and units of both the files and the model.
"""

from typing import NamedTuple

from orchestrator.radio.choice import PathLossChoice, RadioChoice
from orchestrator.radio.settings import Mac
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.radio import DiscRadio, Radio80211b, RadioSection
from orchestrator.spec.topology import Topology

_MBPS = 1e6
_US = 1e-6


class AirSettings(NamedTuple):
    radio: RadioChoice
    mac: Mac


def air_settings(topology: Topology) -> AirSettings:
    """Returns 802.11b settings.
    A disc becomes a radio that is heard up to its range and has a single rate. Contacts have no channel: only
    the length of the queue is theirs.
    """
    section: RadioSection = topology.radio
    match section:
        case DiscRadio():
            rate = section.bandwidth / _MBPS
            mac = Mac(unicast_rate=rate, broadcast_rate=rate, control_rate=rate)
            return AirSettings(RadioChoice("ns3-range", {"range_m": section.range}), mac)
        case ContactRadio():
            return AirSettings(RadioChoice(), Mac(queue_limit=section.queue))
        case Radio80211b():
            return AirSettings(_radio(section, topology.node_names), _mac(section))


def _radio(section: Radio80211b, nodes: tuple[str, ...]) -> RadioChoice:
    """Builds the radio. A section states every value, so the preset fills in nothing."""
    receiver = section.receiver
    return RadioChoice(
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
        path_loss=PathLossChoice(
            section.pathloss.model, section.pathloss.model_dump(mode="json", exclude={"model"}), nodes
        ),
        reception=receiver.reception,
    )


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
