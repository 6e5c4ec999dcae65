"""Runs our routing daemons as processes: configuration file, exit status, signals."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

EXIT_CANNOT_START = 1
EXIT_BAD_CONFIG = 2
_INTERFACES = Path("/proc/sys/net/ipv4/conf")

C = TypeVar("C", bound=Struct)


class CannotStart(Exception):
    """The daemon cannot start; the message is one sentence for the user."""


def run_file(file: str, kind: type[C], live: Callable[[C], int], say: Callable[[str], None]) -> int:
    """Runs ``live`` with a JSON configuration file. Exit status: 0 in
    order, 1 cannot start, 2 bad configuration."""
    try:
        config = msgspec.json.decode(Path(file).read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        say(f"{file}: {error}")
        return EXIT_BAD_CONFIG
    return live(config)


def asked_to_end() -> asyncio.Event:
    """Returns an event that SIGTERM and SIGINT set; needs a running loop."""
    asked = asyncio.Event()
    for signalled in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signalled, asked.set)
    return asked


def remind_to_forward(say: Callable[[str], None]) -> None:
    try:
        switches = [file.read_text().strip() for file in _INTERFACES.glob("*/forwarding")]
    except OSError:
        return  # unknown on this system
    if switches and all(switch == "0" for switch in switches):
        say("this machine does not forward for others: sysctl -w net.ipv4.ip_forward=1")
