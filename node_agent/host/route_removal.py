"""``python -m node_agent.host.route_removal INTERFACE PROTOCOL``: removes routes that a killed daemon left.

PROTOCOL is the number that `ip route` shows as ``proto``. Other routes are not touched. It is no error if
there is no such route.
"""

import sys

from node_agent.host.kernel_routes import KernelRoutes, RoutesRefused


def main(interface: str, protocol: str) -> int:
    try:
        routes = KernelRoutes([interface], _say, int(protocol))
    except RoutesRefused as error:
        _say(str(error))
        return 1
    routes.claim()
    routes.close()
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
