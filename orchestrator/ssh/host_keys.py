"""Stores the key with which each host was enrolled: a file in OpenSSH's known_hosts format, one per topology.

Strict: no connection to a host without a recorded key, or with another one. Only enrolment records keys.
"""

import base64
import binascii
import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import BadInput
from orchestrator.runs.files import write_atomic
from orchestrator.ssh.errors import HostKeyChanged, HostKeyUnknown

_OWNER_ONLY = 0o600
_FOLDER_MODE = 0o700


class HostKey(NamedTuple):
    type: str
    data: bytes

    @property
    def fingerprint(self) -> str:
        """Returns the fingerprint as ``ssh-keygen -l`` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.data).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


def known_hosts_file(topology: str) -> Path:
    """Returns the file for the keys of a topology's hosts: in the
    user's data directory, by the topology's name."""
    data = os.environ.get("XDG_DATA_HOME")
    home = Path(data) if data else Path.home() / ".local" / "share"
    return home / "rove" / "known_hosts" / topology


class KnownHosts:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys = _read(path)

    def key_of(self, name: str) -> HostKey | None:
        return self._keys.get(name)

    def demand(self, name: str) -> HostKey:
        """Returns the key that the host must have."""
        key = self.key_of(name)
        if key is None:
            raise HostKeyUnknown(name, "its host key is not known yet: rove enroll TOPOLOGY")
        return key

    def check(self, name: str, presented: HostKey) -> None:
        recorded = self.demand(name)
        if presented != recorded:
            raise HostKeyChanged(name, changed(recorded, presented.fingerprint))

    def record(self, name: str, key: HostKey) -> None:
        """Writes at once and atomically, readable by the user alone."""
        keys = {**self._keys, name: key}
        lines = [f"{host} {k.type} {base64.b64encode(k.data).decode()}\n" for host, k in keys.items()]
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        write_atomic(self.path, "".join(lines).encode(), _OWNER_ONLY)
        self._keys = keys


def changed(recorded: HostKey, presented: str) -> str:
    return (
        f"its host key has changed: enrolled with {recorded.fingerprint}, now {presented}. Either it was set "
        "up anew, or this is another machine. If you know why, enrol it again: rove enroll TOPOLOGY"
    )


def _read(path: Path) -> dict[str, HostKey]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    keys = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            name, key = _parsed(line, f"{path}, line {number}")
            keys[name] = key
    return keys


def _parsed(line: str, place: str) -> tuple[str, HostKey]:
    try:
        name, kind, encoded = line.split()[:3]
        return name, HostKey(kind, base64.b64decode(encoded, validate=True))
    except (ValueError, binascii.Error):
        hint = "remove it and enrol the host again"
        raise BadInput(f"{place}: not a host key (name, type, key); {hint}") from None
