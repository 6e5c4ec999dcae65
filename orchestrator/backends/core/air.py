"""Configures CORE's radio by the topology's: EMANE's 802.11, or a WLAN with a range.

All values are text. Every CORE default that could matter is set explicitly.
"""

from msgspec import Struct

from orchestrator.radio.path_loss.free_space import FreeSpace
from orchestrator.spec.radio import DiscRadio, Radio80211b
from orchestrator.spec.topology import Topology

EMANE_MODEL = "emane_ieee80211abg"
_RATE_INDEX = {1.0: 1, 2.0: 2, 5.5: 3, 11.0: 4}
_CATEGORIES = range(4)
_MBPS = 1e6
_MICROSECONDS = 1e6


class Air(Struct, frozen=True):
    """``emane``: the name of EMANE's model; empty for CORE's own WLAN with a range."""

    emane: str
    config: dict[str, str]


def air_of(topology: Topology) -> Air:
    """Expects a topology without ``core_findings``."""
    radio = topology.radio
    if isinstance(radio, Radio80211b):
        return Air(EMANE_MODEL, emane_parameters(radio))
    assert isinstance(radio, DiscRadio), "checked: CORE has no contacts"
    return Air("", range_parameters(radio, shaped=topology.core is None or topology.core.netem))


def range_parameters(radio: DiscRadio, shaped: bool) -> dict[str, str]:
    """``range`` is in pixels; in our sessions a pixel is a metre.

    CORE's own defaults (54 Mb/s, 5 ms) need a kernel with netem; without it no session starts.
    """
    return {
        "range": f"{radio.range:.0f}",
        "bandwidth": f"{radio.bandwidth:.0f}" if shaped else "0",
        "delay": f"{radio.latency * _MICROSECONDS:.0f}" if shaped else "0",
        "jitter": "0",
        "error": "0",
        "promiscuous": "0",
    }


def emane_parameters(radio: Radio80211b) -> dict[str, str]:
    each = {
        "queuesize": radio.queue,
        "retrylimit": radio.retries - 1,  # ours counts all transmissions
        "cwmin": radio.contention.cw_min + 1,  # ours is the highest number drawn
        "cwmax": radio.contention.cw_max + 1,
    }
    return {
        "mode": "0",  # 802.11b
        "unicastrate": str(_RATE_INDEX[radio.rate / _MBPS]),
        "multicastrate": str(_RATE_INDEX[radio.broadcast_rate / _MBPS]),
        "rtsthreshold": "0" if radio.rts == "off" else str(radio.rts),
        **{f"{key}{category}": str(value) for key, value in each.items() for category in _CATEGORIES},
        "txpower": str(radio.tx_power),
        "fixedantennagainenable": "1",
        "fixedantennagain": str(radio.antenna_gain),
        "bandwidth": f"{radio.receiver.noise_bandwidth:.0f}",
        "systemnoisefigure": str(radio.receiver.noise_figure),
        "noisemode": "none",  # with any other value the MAC drops all frames
        **_propagation(radio),
    }


def _propagation(radio: Radio80211b) -> dict[str, str]:
    if not isinstance(radio.pathloss, FreeSpace):
        return {"propagationmodel": "2ray"}
    frequency = f"{radio.pathloss.frequency:.0f}"
    return {"propagationmodel": "freespace", "frequency": frequency, "frequencyofinterest": frequency}
