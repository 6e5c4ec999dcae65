"""What the daemon knows, in files so that several processes see the same; and who hears whom in it."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FLOOR_DBM = -110.0
_SEMI_MAJOR = 6378137.0
_SEMI_MINOR = 6356752.3142
_WLAN_DEFAULTS = {"range": "275", "bandwidth": "54000000", "delay": "5000", "jitter": "0", "error": "0"}
_LONGEST_S = 300
Json = dict[str, Any]


def folder() -> Path:
    return Path(os.environ["RECORDED_CORE"])


def traits() -> Json:
    """``up``, ``netem``, ``enforces``, ``emane``: how this CORE and its kernel are. ``processes``: nodes have
    processes, called as CORE calls them, that outlive the daemon."""
    stated = folder() / "traits.json"
    told = json.loads(stated.read_text()) if stated.exists() else {}
    return {
        "up": True,
        "netem": True,
        "enforces": True,
        "emane": True,
        "processes": False,
        "exceptions": [],
        **told,
    }


def sessions() -> dict[int, Json]:
    files = sorted(folder().glob("pycore.*/session.json"))
    return {int(file.parent.name.partition(".")[2]): json.loads(file.read_text()) for file in files}


def session_folder(number: int) -> Path:
    return folder() / f"pycore.{number}"


def write(number: int, session: Json) -> None:
    file = session_folder(number) / "session.json"
    file.parent.mkdir(exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(session))
    partial.rename(file)


def start_processes(number: int, session: Json) -> list[int]:
    """One vnoded a node, and one emane where the air is EMANE's; they only sleep."""
    pids = []
    for name in session["nodes"]:
        channel = f"{session_folder(number)}/{name}"
        pids.append(_sleeper("vnoded", "-v", "-c", channel, "-l", f"{channel}.log", "-p", f"{channel}.pid"))
        if session["air"]["emane"]:
            platform = f"{channel}.conf/eth0-platform.xml"
            pids.append(_sleeper("emane", "-d", "-r", "-f", f"{channel}.conf/eth0-emane.log", platform))
    return pids


def _sleeper(*argv: str) -> int:
    name, *words = argv
    sleep = f"import time; time.sleep({_LONGEST_S})"
    process = subprocess.Popen(
        [name, "-c", sleep, *words],
        executable=sys.executable,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return process.pid


def wlan_config(session: Json) -> dict[str, str]:
    return {**_WLAN_DEFAULTS, **session["air"]["wlan"]}


def hears(session: Json, first: str, second: str) -> bool:
    if session["air"]["emane"]:
        return rx_dbm(session, first, second) >= FLOOR_DBM
    (x1, y1), (x2, y2) = session["nodes"][first]["at"], session["nodes"][second]["at"]
    within = math.hypot(x1 - x2, y1 - y2) <= int(wlan_config(session)["range"])
    return within or not traits()["enforces"]


def rx_dbm(session: Json, first: str, second: str) -> float:
    """EMANE's two-ray ground between positions on Earth."""
    config = session["air"]["emane"]
    assert config["propagationmodel"] == "2ray"
    distance = math.dist(_ecef(session, first), _ecef(session, second))
    height = max(1, round(session["location"]["alt"]))
    loss = max(40 * math.log10(distance) - 40 * math.log10(height), 0.0) if distance else 0.0
    return float(config["txpower"]) + 2 * float(config.get("fixedantennagain", 0)) - loss


def _ecef(session: Json, node: str) -> tuple[float, float, float]:
    location = session["location"]
    x, y = (value / 100.0 * location["scale"] for value in session["nodes"][node]["at"])
    reference = math.log(math.tan(math.pi / 4 + math.radians(location["lat"]) / 2)) * _SEMI_MAJOR
    latitude = 2 * math.atan(math.exp((reference - y) / _SEMI_MAJOR)) - math.pi / 2
    longitude = math.radians(location["lon"]) + x / _SEMI_MAJOR
    altitude = round(location["alt"])
    eccentricity = 1 - (_SEMI_MINOR / _SEMI_MAJOR) ** 2
    radius = _SEMI_MAJOR / math.sqrt(1 - eccentricity * math.sin(latitude) ** 2)
    return (
        (radius + altitude) * math.cos(latitude) * math.cos(longitude),
        (radius + altitude) * math.cos(latitude) * math.sin(longitude),
        (radius * (1 - eccentricity) + altitude) * math.sin(latitude),
    )
