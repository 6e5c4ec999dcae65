"""What of a topology CORE and EMANE cannot do."""

from typing import Any

from orchestrator.radio.path_loss.free_space import FreeSpace
from orchestrator.radio.path_loss.two_ray import TwoRay
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.problems import Finding, Place
from orchestrator.spec.radio import DiscRadio, Radio80211b, RadioSection

_WIDEST_M = 20_000.0
"""Farther from the reference point, CORE's map projection stretches metres by more than a millionth."""
_LONGEST_QUEUE = 255
_EMANES = "seed-80211b"


def core_findings(radio: RadioSection, area: tuple[float, float]) -> list[Finding]:
    """What of a topology CORE cannot do; places are from the topology on."""
    match radio:
        case Radio80211b():
            findings = _emane_findings(radio)
        case DiscRadio():
            findings = _range_findings(radio)
        case ContactRadio():
            text = "CORE's links do not come and go by a schedule"
            findings = [Finding(("radio", "model"), text, "use backend: sim or netns")]
    if max(area) > _WIDEST_M:
        text = f"CORE's map is flat up to {_WIDEST_M / 1000:g} km"
        findings.append(Finding(("area",), text, "use a smaller area"))
    return findings


def _range_findings(radio: DiscRadio) -> list[Finding]:
    if radio.range == int(radio.range):
        return []
    text = f"{radio.range:g} m: CORE's range is a whole number of metres"
    return [Finding(("radio", "range"), text, f"for example {round(radio.range) or 1} m")]


def _emane_findings(radio: Radio80211b) -> list[Finding]:
    findings = _loss_findings(radio)
    if radio.queue > _LONGEST_QUEUE:
        findings.append(Finding(("radio", "queue"), f"{radio.queue}: EMANE's holds {_LONGEST_QUEUE} at most"))
    if radio.preset != _EMANES:
        text = f"{radio.preset} is not how EMANE's radios are"
        return [*findings, Finding(("radio", "preset"), text, f"use preset: {_EMANES}")]
    text = "EMANE's 802.11 does not let this be chosen"
    return findings + [Finding(("radio", *at), text, "leave it out") for at in _chosen(radio)]


def _loss_findings(radio: Radio80211b) -> list[Finding]:
    at: Place = ("radio", "pathloss")
    match radio.pathloss:
        case TwoRay(antenna_height=height):
            if height == int(height):
                return []
            text = f"{height:g} m: CORE rounds antennas to whole metres, which is another path loss"
            return [Finding((*at, "antenna_height"), text, f"for example {round(height)} m")]
        case FreeSpace():
            return []
        case other:
            text = f"EMANE has no path loss {other.model}"
            return [Finding((*at, "model"), text, "use two_ray or free_space, or another backend")]


def _chosen(radio: Radio80211b) -> list[Place]:
    """What is not as EMANE has it, or as our model of EMANE fills in what it does not have."""
    receiver, contention = radio.receiver, radio.contention
    fixed: list[tuple[Place, Any, Any]] = [
        (("control_rate",), radio.control_rate, radio.rate),
        (("preamble",), radio.preamble, "long"),
        (("receiver", "reception"), receiver.reception, "emane"),
        (("receiver", "sensitivity"), receiver.sensitivity, "noise_floor"),
        (("receiver", "carrier_sense"), receiver.carrier_sense, "sensitivity"),
        (("receiver", "preamble_sinr"), receiver.preamble_sinr, -4.0),
        (("receiver", "capture"), receiver.capture, 10.0),
        (("contention", "slot"), contention.slot, 20e-6),
        (("contention", "sifs"), contention.sifs, 10e-6),
    ]
    return [at for at, stated, only in fixed if stated != only]
