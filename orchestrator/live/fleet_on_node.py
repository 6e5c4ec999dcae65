"""Sent to a node as text and run there by its own Python: prints how the node is as one line of JSON."""

from __future__ import annotations  # the node's Python may be older than ours

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any


def _number(path: Path, scale: float = 1.0) -> float | None:
    try:
        return float(path.read_text().split()[0]) / scale
    except (OSError, ValueError, IndexError):
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()[:100]
    except OSError:
        return None


def _battery() -> dict[str, Any] | None:
    """The first battery, in percent, and whether it is charged."""
    for supply in sorted(Path("/sys/class/power_supply").glob("*")):
        if _text(supply / "type") == "Battery":
            level = _number(supply / "capacity")
            if level is not None:
                return {"percent": level, "charging": _text(supply / "status") == "Charging"}
    return None


def _radio(interface: str) -> dict[str, Any]:
    """The interface of the MANET: whether it is there, up, wireless, and how well it hears."""
    folder = Path("/sys/class/net") / interface
    if not folder.is_dir():
        return {"interface": interface, "there": False}
    found: dict[str, Any] = {
        "interface": interface,
        "there": True,
        "state": _text(folder / "operstate"),
        "mac": _text(folder / "address"),
        "wireless": (folder / "wireless").is_dir() or (folder / "phy80211").exists(),
    }
    try:
        for line in Path("/proc/net/wireless").read_text().splitlines():
            match = re.match(r"\s*([^:]+):\s+\S+\s+(\S+)\s+(\S+)", line)
            if match and match.group(1) == interface:
                found["signal_dbm"] = float(match.group(3).rstrip("."))
    except (OSError, ValueError):
        pass
    return found


def _memory() -> dict[str, int] | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        facts = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[:5]}
        return {"bytes": facts["MemTotal"], "free_bytes": facts["MemAvailable"]}
    except (OSError, ValueError, KeyError, IndexError):
        return None


def state(interface: str) -> dict[str, Any]:
    disk = shutil.disk_usage(str(Path.home()))
    try:
        load: float | None = os.getloadavg()[0]
    except OSError:
        load = None
    heats = [_number(zone, 1000.0) for zone in sorted(Path("/sys/class/thermal").glob("thermal_zone*/temp"))]
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "load": load,
        "cores": os.cpu_count() or 1,
        "memory": _memory(),
        "disk": {"bytes": disk.total, "free_bytes": disk.free},
        "battery": _battery(),
        "radio": _radio(interface),
        "celsius": max((each for each in heats if each is not None), default=None),
        "uptime_s": _number(Path("/proc/uptime")),
        "now_ns": time.time_ns(),
    }


if __name__ == "__main__":
    print(json.dumps(state(sys.argv[1])))
