"""Entry points for the fork server's children."""

import json
import os
import socket
import sys
from pathlib import Path


def describe(path: str) -> int:
    """Write what this process sees of itself, and of what must not have reached it."""
    facts = {
        # The last one is the descriptor with which the directory is read.
        "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())[:-1],
        "links": sorted(name for _, name in socket.if_nameindex()),
        "session": os.getsid(0) == os.getpid(),
        "uid": os.getuid(),
        "groups": os.getgroups(),
        "preloaded": "colorsys" in sys.modules,
        "environment": dict(os.environ),
    }
    Path(path).write_text(json.dumps(facts))
    return 7


def fail() -> None:
    print("about to fail")
    raise ValueError("on purpose")
