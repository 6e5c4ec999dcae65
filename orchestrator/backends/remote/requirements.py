"""Checks what deployment cannot bring to a machine and its owner has to set up."""

from node_agent.model.checked import Refused
from node_agent.supervisor.status import PlaceStatus
from orchestrator.backends.remote.supervisor_output import PLACES
from orchestrator.deployment.deploy import Deployed
from orchestrator.services.base import RoutingService
from orchestrator.services.program import LIBRARY_FOLDERS, SYSTEM_PATH
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import SshError

_STATUS_S = 30.0
_WHICH = 'PATH="$PATH:$1"; command -v -- "$2"'
_LIBRARY = (
    'name=$1; shift; for folder; do for each in $folder; do [ -f "$each/$name" ] && exit; done; done; false'
)


class NotReady(SshError):
    """The node lacks something that its owner has to set up."""


async def require(connection: Connection, service: RoutingService | None, privilege: bool) -> None:
    """Checks privileges, and that the routing daemon is installed. Raises SudoRefused or NotReady."""
    if privilege or service is not None:
        await connection.output(["true"], sudo=True)
    for program in service.executables if service is not None else ():
        done = await connection.run(["sh", "-c", _WHICH, "sh", SYSTEM_PATH, program.name])
        if done.status != 0:
            raise NotReady(connection.host.name, f"{program.name} is not installed there: {program.advice}")
        for name in program.libraries:
            done = await connection.run(["sh", "-c", _LIBRARY, "sh", name, *LIBRARY_FOLDERS])
            if done.status != 0:
                raise NotReady(connection.host.name, f"{name} is not installed there: {program.advice}")


async def require_free(connection: Connection, deployed: Deployed, run_id: str) -> None:
    """Checks that no other run uses the node: they would share ports, routes and the radio.

    Raises NotReady.
    """
    argv = deployed.command("node_agent.supervisor", "status", deployed.rove)
    output = await connection.output(argv, timeout=_STATUS_S)
    try:
        places = PLACES.decode(output.encode()).places
    except Refused as error:
        raise NotReady(connection.host.name, f"what runs there cannot be read: {error}") from None
    for place in places:
        if place.run != run_id and (place.state == "running" or place.pids):
            raise NotReady(connection.host.name, _occupied(place))


def _occupied(place: PlaceStatus) -> str:
    lease = place.lease
    abandoned = lease is not None and not lease.owned
    until = f"; nobody renews its lease, which ends in {lease.left:.0f} s" if lease and abandoned else ""
    return f"run {place.run} is going on there{until}: wait for it, or end it with rove down {place.run}"
