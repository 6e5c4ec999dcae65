"""Finds out whether a process that was started is the one that answers on a port, and whether it is ready."""

import base64
import http.client
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOOPBACK = "127.0.0.1"
ANSWER_S = 2.0
_LISTENING = "0A"


class Login(NamedTuple):
    user: str
    password: str

    @property
    def header(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def listens(pid: int, port: int) -> bool:
    """Whether this very process listens on the port of 127.0.0.1: another one may have taken it before."""
    address = int.from_bytes(socket.inet_aton(LOOPBACK), sys.byteorder)
    wanted = f"{address:08X}:{port:04X}"
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        fields = [line.split() for line in lines]
        inodes = {each[9] for each in fields if each[1] == wanted and each[3] == _LISTENING}
        return bool(inodes) and any(f"socket:[{inode}]" in _open_files(pid) for inode in inodes)
    except OSError:  # it has ended
        return False


def _open_files(pid: int) -> set[str]:
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found.add(str(each.readlink()))
    return found


def is_ready(port: int, login: Login | None) -> bool:
    """Whether Prometheus is ready. Asks directly: a proxy of the environment is for other places."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=ANSWER_S)
    try:
        connection.request(
            "GET", "/-/ready", headers={"Authorization": login.header} if login is not None else {}
        )
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
