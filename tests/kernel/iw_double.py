"""A double of `iw`: this kernel has no wireless devices. It answers in iw's words about one imagined radio.

What it says is how iw 5.19 prints a Raspberry Pi's radio; what it refuses, and with which error, is what
nl80211 refuses: another mode while the interface is up, joining while it is down. The interface itself is
real, and so is whether it is up. Its state and the commands it was given are in the file $IW_DOUBLE.
"""

import errno
import fcntl
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

FRESH: dict[str, Any] = {
    "type": "managed",
    "ssid": None,
    "frequency": None,
    "power_save": "on",
    "commands": [],
}
RADIO = """Wiphy phy0
\twiphy index: 0
\tmax # scan SSIDs: 10
\tBand 1:
\t\tCapabilities: 0x1062
\t\t\tHT20/HT40
\t\tBitrates (non-HT):
\t\t\t* 1.0 Mbps
\t\t\t* 2.0 Mbps (short preamble supported)
\t\tFrequencies:
\t\t\t* 2412 MHz [1] (20.0 dBm)
\t\t\t* 2437 MHz [6] (20.0 dBm)
\t\t\t* 2484 MHz [14] (disabled)
\tBand 2:
\t\tFrequencies:
\t\t\t* 5180 MHz [36] (20.0 dBm)
\t\t\t* 5260 MHz [52] (20.0 dBm) (no IR, radar detection)
\tSupported interface modes:
\t\t * IBSS
\t\t * managed
\t\t * AP
\t\t * mesh point
\tBand 1:
"""
KINDS = {"managed": "managed", "ibss": "IBSS", "mp": "mesh point"}


def is_up(interface: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        answer = fcntl.ioctl(asking, 0x8913, struct.pack("16s16x", interface.encode()))
    return bool(struct.unpack_from("=H", answer, 16)[0] & 1)


def obey(state: dict[str, Any], words: list[str]) -> int:
    """An error number, 0 if all is well."""
    match words:
        case ["phy#0", "info"]:
            print(RADIO, end="")
        case ["dev", interface, "info"]:
            print(f"Interface {interface}\n\tifindex 3\n\twdev 0x1\n\taddr 02:00:00:00:01:01")
            if state["ssid"] and state["type"] != "mesh point":
                print(f"\tssid {state['ssid']}")
            print(f"\ttype {state['type']}\n\twiphy 0")
            if state["frequency"]:
                frequency = state["frequency"]
                print(f"\tchannel 1 ({frequency} MHz), width: 20 MHz, center1: {frequency} MHz")
            print("\ttxpower 31.00 dBm")
        case ["dev", _, "get", "power_save"]:
            print(f"Power save: {state['power_save']}")
        case ["dev", _, "set", "power_save", word]:
            state["power_save"] = word
        case ["dev", interface, "set", "type", word]:
            if is_up(interface):
                return errno.EBUSY
            state |= {"type": KINDS[word], "ssid": None, "frequency": None}
        case ["dev", interface, "ibss", "join", ssid, frequency, *_]:
            return join(state, interface, "IBSS", ssid, frequency)
        case ["dev", interface, "mesh", "join", ssid, "freq", frequency, *_]:
            return join(state, interface, "mesh point", ssid, frequency)
        case ["dev", _, "ibss" | "mesh", "leave"]:
            if state["ssid"] is None:
                return errno.ENOLINK
            state |= {"ssid": None, "frequency": None}
        case ["dev", interface, "set", "mesh_param", "mesh_fwding", "0"]:
            return 0 if state["type"] == "mesh point" and is_up(interface) else errno.ENOTCONN
        case _:
            return errno.EINVAL
    return 0


def join(state: dict[str, Any], interface: str, kind: str, ssid: str, frequency: str) -> int:
    if state["type"] != kind:
        return errno.EOPNOTSUPP
    if not is_up(interface):
        return errno.ENETDOWN
    if state["ssid"] is not None:
        return errno.EALREADY
    state |= {"ssid": ssid, "frequency": int(frequency)}
    return 0


def main() -> int:
    file = Path(os.environ["IW_DOUBLE"])
    state = json.loads(file.read_text()) if file.exists() else FRESH
    words = sys.argv[1:]
    error = obey(state, words)
    if error:
        print(f"command failed: {os.strerror(error)} (-{error})", file=sys.stderr)
    elif not {"info", "get"} & set(words):
        state["commands"].append(" ".join(words))
    file.write_text(json.dumps(state))
    return 256 - error if error else 0


if __name__ == "__main__":
    sys.exit(main())
