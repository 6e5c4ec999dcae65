"""The host that runs CORE, the key ``core`` of a topology, and what its radios cannot do.

CORE and EMANE are installed there by their users: docs/core.md says what is expected where.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.spec.hosts import Access, Address, JumpField, KeyPath, Login, SshPort, host_of
from orchestrator.spec.inventory import Host
from orchestrator.spec.pathloss import FreeSpace, TwoRay
from orchestrator.spec.problems import Finding, Place, shown, unusable
from orchestrator.spec.radio import DiscRadio, Radio80211b, RadioSection

CORE_HOST = "core"
"""What the host's key is enrolled under."""
_ENDPOINT = r"[A-Za-z0-9._-]{1,253}:\d{1,5}"
_WIDEST_M = 20_000.0
"""Farther from the reference point, CORE's map projection stretches metres by more than a millionth."""
_LONGEST_QUEUE = 255
_EMANES = "seed-80211b"


def _read_python(value: Any) -> str:
    if isinstance(value, str) and value.startswith("/") and "\n" not in value:
        return value
    hint = "for example python: /opt/core/venv/bin/python"
    raise unusable(f"{shown(value)} is not the absolute path of a Python", hint)


def _read_endpoint(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(_ENDPOINT, value):
        return value
    raise unusable(f"{shown(value)} is not where a daemon listens", "for example daemon: localhost:50051")


class Core(Access):
    """How the host is reached over SSH, and where CORE is on it."""

    host: Address = Field(examples=["emulator.lab"])
    user: Login
    port: SshPort = Field(default=22, description="Of its SSH server")
    key: KeyPath | None = None
    jump: JumpField = Field(default=None, description="A host to go through", examples=["me@gateway.lab"])
    python: Annotated[
        str,
        BeforeValidator(_read_python),
        WithJsonSchema({"type": "string", "pattern": "^/", "description": "The Python that CORE is in"}),
    ] = "/opt/core/venv/bin/python"
    daemon: Annotated[
        str,
        BeforeValidator(_read_endpoint),
        WithJsonSchema(
            {"type": "string", "pattern": f"^{_ENDPOINT}$", "description": "Where core-daemon listens there"}
        ),
    ] = "localhost:50051"
    netem: bool = Field(
        default=True,
        strict=True,
        description="false: its kernel has no netem, so that a disc has neither rate nor latency",
    )

    def machine(self) -> Host:
        return host_of(CORE_HOST, self.model_dump())


def core_findings(radio: RadioSection, area: tuple[float, float]) -> list[Finding]:
    """What of a topology CORE cannot do; places are from the topology on."""
    findings = _emane_findings(radio) if isinstance(radio, Radio80211b) else _range_findings(radio)
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
