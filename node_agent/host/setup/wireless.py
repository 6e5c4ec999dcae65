"""Reads the output of `iw` about a wireless interface and its radio into values."""

import re

from msgspec import Struct


class Wireless(Struct, frozen=True):
    """``kind`` is iw's name of the mode: managed, IBSS, mesh point, …"""

    kind: str
    radio: int
    ssid: str | None = None
    frequency: int | None = None
    power_save: bool = False


class RadioFacts(Struct, frozen=True):
    """``frequencies``: in MHz, each with the reason why sending is not allowed, or an empty text."""

    modes: tuple[str, ...]
    frequencies: dict[int, str]


def read_wireless(info: str, power_save: str) -> Wireless:
    """Reads the output of `iw dev X info` and `iw dev X get power_save`."""
    said = dict(re.findall(r"^\t(type|wiphy|ssid|channel) (.*)$", info, re.MULTILINE))
    channel = re.search(r"\((\d+)(?:\.\d+)? MHz\)", said.get("channel", ""))
    return Wireless(
        kind=said["type"],
        radio=int(said["wiphy"]),
        ssid=said.get("ssid"),
        frequency=int(channel[1]) if channel else None,
        power_save=power_save.strip() == "Power save: on",
    )


def read_radio(info: str) -> RadioFacts:
    """Reads the output of `iw phy#N info`."""
    modes = re.search(r"^\tSupported interface modes:\n((?:\t\t \* .*\n)+)", info, re.MULTILINE)
    listed = re.findall(r"^\t\t\t\* (\d+)(?:\.\d+)? MHz \[\d+\](.*)$", info, re.MULTILINE)
    return RadioFacts(
        modes=tuple(re.findall(r"\* (.+)", modes[1])) if modes else (),
        frequencies={int(frequency): _objection(remarks) for frequency, remarks in listed},
    )


def _objection(remarks: str) -> str:
    for word in ("disabled", "no IR", "no ibss", "passive scan", "radar detection"):
        if f"({word}" in remarks or f", {word}" in remarks:
            return word
    return ""
