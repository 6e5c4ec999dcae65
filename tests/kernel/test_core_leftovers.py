"""Bridges that a session of CORE left: real ones, in a namespace of the test's own. CORE is not here."""

import json
import subprocess
import sys
from pathlib import Path

from orchestrator.backends.core.driver_client import LEFTOVERS

SCRIPT = """
import json, socket, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import leftovers
place, note = Path(sys.argv[2]), Path(sys.argv[3])

def ip(*words):
    subprocess.run(["ip", "link", *words], check=True)

def names():
    return sorted(name for _, name in socket.if_nameindex() if name != "lo")

ip("add", "b.99.7", "type", "bridge")  # somebody's, and older
leftovers.note(note, "run token", 7, str(place))
ip("add", "b.100.7", "type", "bridge")
ip("add", "veth1.0.7", "type", "veth", "peer", "name", "eth9")
ip("set", "veth1.0.7", "master", "b.100.7")
ip("add", "b.100.8", "type", "bridge")  # another session's
ip("add", "br-lan", "type", "bridge")
found = leftovers.find(note)
leftovers.remove(note)
print(json.dumps({"found": found, "left": leftovers.find(note), "names": names()}))
"""


def test_bridges_of_the_session_go_and_no_others(tmp_path: Path) -> None:
    place, note = tmp_path / "pycore.7", tmp_path / "notes" / "note.json"
    place.mkdir()
    argv = ["unshare", "--net", sys.executable, "-c", SCRIPT, str(LEFTOVERS.parent), str(place), str(note)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(told["found"]) == [f"directory {place}", "interface b.100.7", "interface veth1.0.7"]
    assert told["left"] == []
    assert told["names"] == ["b.100.8", "b.99.7", "br-lan"]
    assert not place.exists() and not note.exists()


def test_names_that_two_sessions_may_have_are_left_alone(tmp_path: Path) -> None:
    """CORE shortens numbers: sessions 1792 and 7 look alike in the names of interfaces."""
    place, note = tmp_path / "pycore.7", tmp_path / "note.json"
    place.mkdir()
    (tmp_path / "pycore.1792").mkdir()
    argv = ["unshare", "--net", sys.executable, "-c", SCRIPT, str(LEFTOVERS.parent), str(place), str(note)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "b.100.7" in json.loads(done.stdout)["names"]
    assert not place.exists(), "what is certainly ours goes"
