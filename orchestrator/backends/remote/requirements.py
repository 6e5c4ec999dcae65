"""What deployment cannot bring to a machine, and whoever owns it has to see to."""

from orchestrator.services.base import RoutingService
from orchestrator.services.program import SYSTEM_PATH
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import SshError

_WHICH = 'PATH="$PATH:$1"; command -v -- "$2"'


class NotReady(SshError):
    """The node lacks something that whoever set it up has to see to."""


async def require(connection: Connection, service: RoutingService | None, privilege: bool) -> None:
    """Privilege, and the routing daemon that is to be started. Raises SudoRefused or NotReady."""
    if privilege or service is not None:
        await connection.output(["true"], sudo=True)
    for program in service.executables if service is not None else ():
        done = await connection.run(["sh", "-c", _WHICH, "sh", SYSTEM_PATH, program.name])
        if done.status != 0:
            raise NotReady(connection.host.name, f"{program.name} is not installed there: {program.advice}")
