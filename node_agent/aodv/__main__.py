"""``python -m node_agent.aodv --interface wlan0``: AODV on this machine."""

import argparse
import sys

from node_agent.aodv.config import AodvConfig
from node_agent.aodv.process import ProcessConfig, live, run, say
from node_agent.host.daemon_process import EXIT_BAD_CONFIG
from node_agent.manet.membership import ManetConfig
from node_agent.manet.process import add_key_argument, read_key

_DEFAULT = AodvConfig(detection="hello")
_PROCESS = ProcessConfig(interface="any")

_EXAMPLE = """\
example: on each of a few Raspberry Pis in one ad-hoc network, 10.0.0.1/24, 10.0.0.2/24, …
    sudo sysctl -w net.ipv4.ip_forward=1
    sudo python3 -m node_agent.aodv --interface wlan0
  then, on any of them:
    ping 10.0.0.3                                 the first packet waits until a route is found
    ip route show proto 84                        the routes it made; those into aodv0 hold packets
    curl http://127.0.0.1:9654/routes             hop counts by destination
    curl http://127.0.0.1:9654/counters           messages and bytes by kind
  Ctrl-C (or SIGTERM) ends it and removes its routes and the device.

Without a key anyone in radio range can take part: routes lead only to addresses of the ad-hoc network
(--network), but anyone can change their paths. With the same --key-file on all nodes, messages without its
seal are refused.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m node_agent.aodv",
        description="An AODV routing daemon (RFC 3561). Needs root (UDP port 654, routes, a TUN device).",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = made.add_mutually_exclusive_group(required=True)
    which.add_argument("-i", "--interface", metavar="NAME", help="interface for AODV")
    which.add_argument(
        "--config", metavar="FILE", help="read everything from a JSON file and ignore other options"
    )
    made.add_argument(
        "--hello",
        type=float,
        metavar="S",
        dest="hello_interval",
        default=_DEFAULT.hello_interval,
        help=f"seconds between two hellos while routes are in use ({_DEFAULT.hello_interval:g})",
    )
    made.add_argument(
        "--allowed-hello-loss",
        type=int,
        metavar="N",
        default=_DEFAULT.allowed_hello_loss,
        help=f"missed hellos after which a link is broken ({_DEFAULT.allowed_hello_loss})",
    )
    made.add_argument(
        "--active-route-timeout",
        type=float,
        metavar="S",
        default=_DEFAULT.active_route_timeout,
        help=f"seconds that an unused route lives ({_DEFAULT.active_route_timeout:g})",
    )
    made.add_argument(
        "--destination-only", action="store_true", help="only the destination may answer requests"
    )
    made.add_argument(
        "--network",
        metavar="NETWORK",
        help="network of the other nodes, e.g. 10.0.0.0/16; no routes lead elsewhere (the interface's own)",
    )
    add_key_argument(made)
    made.add_argument(
        "--device",
        metavar="NAME",
        default=_PROCESS.device,
        help=f"name of the TUN device ({_PROCESS.device})",
    )
    made.add_argument(
        "--info-port",
        type=int,
        metavar="PORT",
        default=_PROCESS.info_port,
        help=f"for queries, on 127.0.0.1; 0 = none ({_PROCESS.info_port})",
    )
    made.add_argument("--seed", type=int, metavar="N", help="repeatable jitter")
    return made


def configured(arguments: argparse.Namespace) -> ProcessConfig:
    """Builds the configuration from the command line. Raises ValueError."""
    return ProcessConfig(
        interface=arguments.interface,
        aodv=AodvConfig(
            detection="hello",
            hello_interval=arguments.hello_interval,
            allowed_hello_loss=arguments.allowed_hello_loss,
            active_route_timeout=arguments.active_route_timeout,
            destination_only=arguments.destination_only,
        ),
        manet=ManetConfig(
            networks=(arguments.network,) if arguments.network else (),
            key=read_key(arguments.key_file) if arguments.key_file else b"",
        ),
        device=arguments.device,
        info_port=arguments.info_port,
        seed=arguments.seed,
    )


def main(words: list[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    if arguments.config is not None:
        return run(arguments.config)
    try:
        config = configured(arguments)
    except ValueError as error:
        say(str(error))
        return EXIT_BAD_CONFIG
    return live(config)


if __name__ == "__main__":
    sys.exit(main())
