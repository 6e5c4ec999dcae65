"""What a set-up that was killed could not give back itself, given back by the way it noted for that."""

import os
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from node_agent.keeping.order import KeeperOrder
from node_agent.keeping.place import RECORD
from node_agent.keeping.programs import Log, with_rights

UNDO_S = 20.0


class _Undone(Struct, frozen=True):
    error: str = ""
    left: tuple[str, ...] = ()


def undo_set_up(order: KeeperOrder, place: Path) -> str:
    """What is not as it was before the run; empty if nothing is. May be repeated, and finds nothing then."""
    if order.setup is None or order.undo is None or not (place / order.undo.file).exists():
        return ""
    name, log = order.setup.name, Log(place / RECORD / order.setup.log)
    command = with_rights(order.undo.argv, order.setup.privileged, os.environ, os.geteuid())
    try:
        output = log.open()
    except OSError:  # no room, which is no reason to leave a node as it is
        output = os.open(os.devnull, os.O_WRONLY)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=output, timeout=UNDO_S
        )
        said = msgspec.json.decode(done.stdout, type=_Undone)
    except subprocess.TimeoutExpired:
        return f"{name} is not undone within {UNDO_S:g} s"
    except (OSError, msgspec.DecodeError) as error:
        return f"{name} cannot be undone: {log.last_line() or error}"
    finally:
        os.close(output)
    told = said.error or "; ".join(said.left)
    return f"{name} is not undone: {told}" if told else ""
