"""What a node of the double says of its network: ``answers.py FOLDER/NODE COMMAND…``."""

import json
import sys
from pathlib import Path

from core import recorded  # type: ignore[import-not-found,unused-ignore]

channel, command = Path(sys.argv[1]), sys.argv[2:]
node = channel.name
session = json.loads((channel.parent / "session.json").read_text())
if command[0] == "ping":
    (peer,) = (name for name, known in session["nodes"].items() if known["address"] == command[-1])
    sys.exit(0 if recorded.hears(session, node, peer) else 1)
number = list(session["nodes"]).index(node) + 1
if command[2] == "link":
    print(f"2: eth0@if5: <UP>\\    link/ether 02:02:00:00:00:{number:02x} brd ff:ff:ff:ff:ff:ff")
else:
    print(f"9: ctrl0    inet 172.16.0.{number}/24 scope global ctrl0")
