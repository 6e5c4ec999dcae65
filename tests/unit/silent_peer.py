"""The receiving end of a link as a process of its own, for a test that stops it: ``silent_peer.py HOST``.

Says the number of its port.
"""

import asyncio
import sys

from node_agent.ports.os_port import OsPort
from node_agent.transport.limits import ConnectionLimits
from tests.unit.connection_ends import Receiver


async def main(host: str) -> None:
    port = OsPort(host)
    receiver = Receiver(port, ConnectionLimits(dead_after=1.0), [host])
    print((await receiver.server.open(0)).port, flush=True)
    await asyncio.sleep(30)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
