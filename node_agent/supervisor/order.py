"""What a supervisor runs, as the orchestrator wrote it into the run's place on the node."""

from pathlib import Path, PurePath

import msgspec
from msgspec import Struct

from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.lease import is_term

ORDER = "order.json"
_LARGEST = 1024 * 1024


class BadOrder(Exception):
    """The message is one sentence for the user."""


class Program(Struct, frozen=True, forbid_unknown_fields=True):
    """``log``: the name of its log file in the record. ``privileged``: it needs root.

    ``undo``: the command, with the same rights, that removes what it leaves if it is killed.
    """

    name: str
    argv: tuple[str, ...]
    log: str
    privileged: bool = False
    undo: tuple[str, ...] = ()


class Undo(Struct, frozen=True, forbid_unknown_fields=True):
    """``argv`` undoes, with the set-up's rights, what a killed set-up left, as ``file`` in the place says."""

    argv: tuple[str, ...]
    file: str


class SupervisorOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """``lease``: for how many seconds the supervisor goes on without a message from its owner.

    ``probes_host``: the node is a machine of its own, and the supervisor measures its load.
    """

    run: str
    node: str
    protocol: int
    lease: float
    setup: Program | None
    services: tuple[Program, ...]
    agent: Program
    undo: Undo | None = None
    probes_host: bool = False


class _Version(Struct):
    protocol: int


def read_order(place: Path) -> SupervisorOrder:
    """Reads the order in a place. Raises BadOrder."""
    file = place / ORDER
    try:
        with file.open("rb") as stream:
            return decode_order(stream.read(_LARGEST))
    except OSError as error:
        raise BadOrder(f"{file}: {error.strerror}") from error
    except BadOrder as error:
        raise BadOrder(f"{file}: {error}") from None


def decode_order(written: bytes) -> SupervisorOrder:
    """Decodes an order. Checks the version first: another version may have another format.
    Raises BadOrder.
    """
    try:
        check_protocol(msgspec.json.decode(written, type=_Version).protocol)
        order = msgspec.json.decode(written, type=SupervisorOrder)
    except msgspec.DecodeError as error:
        raise BadOrder(str(error)) from error
    if wrong := _problems(order):
        raise BadOrder("; ".join(wrong))
    return order


def check_protocol(other: int) -> None:
    """Raises BadOrder if the version is not ours."""
    if other != PROTOCOL:
        raise BadOrder(
            f"the orchestrator speaks version {other} of the supervisor's protocol, this node {PROTOCOL}: "
            "deploy the same version on both"
        )


def _problems(order: SupervisorOrder) -> list[str]:
    wrong = [f"{key} is empty" for key in ("run", "node") if not getattr(order, key)]
    if not is_term(order.lease):
        wrong.append(f"lease: {order.lease:g} s is no valid lease")
    if order.agent.privileged:
        wrong.append("agent: it runs with the user's rights")
    programs = [order.agent, *order.services, *([order.setup] if order.setup else [])]
    for program in programs:
        if not program.argv or not program.argv[0]:
            wrong.append(f"{program.name}: argv is empty")
        if program.log in ("", ".", "..") or PurePath(program.log).name != program.log:
            wrong.append(f"{program.name}: log must be the name of a file in the record, not {program.log!r}")
    return wrong
