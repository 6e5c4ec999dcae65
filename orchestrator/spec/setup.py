"""Defines the key ``setup`` of ``hosts`` and ``defaults``: how a real node's network is set up for a run."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.spec.base import Section
from orchestrator.spec.problems import shown, unusable

_LONGEST_SSID = 32
_CHANNELS = (*range(1, 15), *range(36, 65, 4), *range(100, 145, 4), *range(149, 178, 4))
_CELL = "[0-9a-f]{2}(:[0-9a-f]{2}){5}"


def frequency_of(channel: int) -> int:
    """Returns the centre of a 20 MHz channel, in MHz."""
    if channel == 14:
        return 2484
    return 2407 + 5 * channel if channel < 14 else 5000 + 5 * channel


def _read_ssid(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise unusable(f"{shown(value)} is not the name of a network", "for example ssid: rove")
    if len(value.encode()) > _LONGEST_SSID:
        raise unusable(f"{shown(value)} is too long: {_LONGEST_SSID} bytes at most")
    return value


def _read_channel(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _CHANNELS:
        hint = "1 to 14 at 2.4 GHz; 36, 40, … 177 at 5 GHz"
        raise unusable(f"{shown(value)} is not a channel of 20 MHz", hint)
    return value


def _read_mode(value: Any) -> Any:
    """Allows a mode without parameters to be written as one word."""
    return {"mode": value} if isinstance(value, str) else value


def _read_cell(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(_CELL, value.lower()):
        raise unusable(
            f"{shown(value)} is not the address of a cell", 'for example bssid: "02:12:34:56:78:9a"'
        )
    return value.lower()


Ssid = Annotated[
    str,
    BeforeValidator(_read_ssid),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": _LONGEST_SSID}),
]
Channel = Annotated[
    int, BeforeValidator(_read_channel), WithJsonSchema({"type": "integer", "enum": list(_CHANNELS)})
]
Cell = Annotated[
    str, BeforeValidator(_read_cell), WithJsonSchema({"type": "string", "pattern": f"^{_CELL}$"})
]
Prefix = Annotated[int, Field(strict=True, ge=8, le=30, description="Length of the MANET's network prefix")]


class ConfiguredSetup(Section):
    """The network is set up already. Rove changes nothing."""

    mode: Literal["configured"] = "configured"


class LanSetup(Section):
    """Sets up a wired network: address and forwarding."""

    mode: Literal["lan"]
    prefix: Prefix = 16


class IbssSetup(Section):
    """Sets up the ad-hoc mode of 802.11."""

    mode: Literal["ibss"]
    ssid: Ssid = "rove"
    channel: Channel = 1
    bssid: Cell | None = Field(
        default=None,
        description="The same for all, where cells of a network that was divided would not merge again",
        examples=["02:12:34:56:78:9a"],
    )
    prefix: Prefix = 16


class MeshSetup(Section):
    """Sets up 802.11s with its own forwarding switched off."""

    mode: Literal["mesh"]
    ssid: Ssid = "rove"
    channel: Channel = 1
    prefix: Prefix = 16


Setup = ConfiguredSetup | LanSetup | IbssSetup | MeshSetup
SetupField = Annotated[
    Annotated[Setup, Field(discriminator="mode")],
    BeforeValidator(_read_mode, json_schema_input_type=Literal["configured", "lan", "ibss", "mesh"] | Setup),
]
