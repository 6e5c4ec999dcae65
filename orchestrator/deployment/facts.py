"""Asks a node in one round trip for its Python, its machine and its packages."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from node_agent.model.checked import Checked, Refused
from orchestrator.deployment import facts_on_node
from orchestrator.deployment.errors import CannotDeploy, WrongPython
from orchestrator.ssh.connection import Connection

PROBE_S = 20.0
OLDEST = (3, 11)
_NEWEST_MINOR = 15
_NO_PYTHON = 3
_MOST_FACTS_BYTES = 1024 * 1024
_SCRIPT = Path(facts_on_node.__file__).read_text()
_CANDIDATES = (
    "python3",
    *(f"python3.{minor}" for minor in range(_NEWEST_MINOR, OLDEST[1] - 1, -1)),
    "/usr/local/bin/python3",
    "/data/data/com.termux/files/usr/bin/python3",
)
# The first Python that is new enough prints the facts; if there is none, the older ones are listed.
_FIND = f"""
older=
for python in {shlex.join(_CANDIDATES)}; do
    found=$("$python" -c 'import sys; print("%d %d.%d" % (sys.version_info[0] * 100 + sys.version_info[1],
        sys.version_info[0], sys.version_info[1]))' 2>/dev/null) || continue
    if [ "${{found%% *}}" -ge {OLDEST[0] * 100 + OLDEST[1]} ]; then exec "$python" -P -c "$1"; fi
    older="$older$python is ${{found#* }}
"
done
printf %s "$older"
exit {_NO_PYTHON}
"""


_Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{0,64}\Z")]
_Path = Annotated[str, Meta(pattern=r"\A/[^\x00-\x1f\x7f]{0,1000}\Z")]
_Number = Annotated[int, Meta(ge=0, le=999)]


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """The facts as a node reports them. Each is bounded, as they go into choices and commands."""

    python: _Path
    version: tuple[_Number, _Number, _Number]
    machine: _Word
    system: _Word
    libc: _Word
    libc_version: tuple[_Number, _Number]
    home: _Path
    packages: dict[str, str]
    sites: dict[str, str]
    implementation: _Word
    abiflags: _Word


_FACTS: Checked[_Answer] = Checked(_Answer, _MOST_FACTS_BYTES)


@dataclass(frozen=True)
class NodeFacts:
    """``machine`` is that of the node's Python: a 32-bit Python on a 64-bit kernel counts as 32-bit.

    ``packages`` are the node's own: normalised name → version; ``sites``: the directory each is in.
    """

    host: str
    python: str
    version: tuple[int, int, int]
    machine: str
    system: str
    """linux, android, or another platform name of Python."""
    libc: str
    """glibc, musl, or empty."""
    libc_version: tuple[int, int]
    home: str
    packages: Mapping[str, str] = field(default_factory=dict)
    sites: Mapping[str, str] = field(default_factory=dict)
    implementation: str = "cpython"
    abiflags: str = ""

    @property
    def rove(self) -> str:
        """Returns the directory that holds everything of Rove on the node."""
        return f"{self.home}/.rove"

    def __str__(self) -> str:
        libc = f", {self.libc} {'.'.join(map(str, self.libc_version))}" if self.libc else ""
        return f"Python {'.'.join(map(str, self.version))}, {self.system} {self.machine}{libc}"


async def probe(connection: Connection, timeout: float = PROBE_S) -> NodeFacts:
    """Asks a node for its facts. Raises WrongPython, CannotDeploy, and what ``Connection.run`` raises."""
    done = await connection.run(["sh", "-c", _FIND, "sh", _SCRIPT], timeout=timeout)
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    host = connection.host.name
    if done.status == _NO_PYTHON:
        raise WrongPython(host, no_python(lines))
    if done.status != 0 or not lines:
        complaint = done.stderr.decode(errors="replace").strip().splitlines()
        text = complaint[-1] if complaint else f"status {done.status}"
        raise CannotDeploy(host, f"its Python cannot tell what the node is: {text}")
    if len(lines) > 1:
        raise CannotDeploy(host, _shell_prints(lines[0]))
    try:
        return read_facts(host, lines[-1].encode())
    except Refused:
        text = f"its Python cannot tell what the node is: it says {lines[-1][:80]!r}"
        raise CannotDeploy(host, text) from None


def read_facts(host: str, answer: bytes) -> NodeFacts:
    """Reads a node's answer. Raises Refused."""
    return NodeFacts(host=host, **structs.asdict(_FACTS.decode(answer)))


def _shell_prints(line: str) -> str:
    return (
        f"its shell says {line[:60]!r} before each command, which would get into files and answers: "
        "print such things only at terminals (in ~/.bashrc, ~/.profile or ~/.ssh/rc: [ -t 1 ] && echo …)"
    )


def no_python(found: list[str]) -> str:
    wanted = f"Python {'.'.join(map(str, OLDEST))} or later is needed there"
    have = f"it has only older ones ({', '.join(found)})" if found else "it has none that could be found"
    advice = (
        "Debian 12 and Raspberry Pi OS 12 have it: apt install python3; Termux: pkg install python; "
        "elsewhere put a python3.11 or later on the user's PATH for SSH sessions"
    )
    return f"{wanted}, and {have}. {advice}"
