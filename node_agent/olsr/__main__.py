"""``python -m node_agent.olsr --interface wlan0``: OLSR on this machine, alone or among olsrd nodes."""

import argparse
import sys
from ipaddress import IPv4Network
from typing import get_args

from node_agent.host.daemon_process import EXIT_BAD_CONFIG
from node_agent.manet.membership import ManetConfig
from node_agent.manet.process import add_key_argument, read_key
from node_agent.olsr.config import OlsrConfig, Quality
from node_agent.olsr.process import ProcessConfig, live, run, say

_DEFAULT = OlsrConfig()
_PORTS = ProcessConfig(interfaces=("any",))
_OPTIONS = {"hna": "--hna", "accept_networks": "--accept-hna", "networks": "--network"}

_EXAMPLE = """\
example: three Raspberry Pis without an access point
  on each Pi, with another last number in the address:
    sudo ip link set wlan0 down && sudo iw dev wlan0 set type ibss
    sudo ip link set wlan0 up && sudo iw dev wlan0 ibss join rove 2412
    sudo ip address add 10.0.0.1/24 dev wlan0
    sudo sysctl -w net.ipv4.ip_forward=1
    sudo python3 -m node_agent.olsr --interface wlan0
  then, on any of them:
    ip route show proto 83                        the routes it made
    curl http://127.0.0.1:9090/links              its links and their ETX
    curl http://127.0.0.1:2006/rou                its routes as text
  Ctrl-C (or SIGTERM) ends it: it says goodbye to the other nodes, and removes its routes.

Without a key anyone in radio range can take part: routes lead only to addresses of the ad-hoc network
(--network), but anyone can change their paths. With the same --key-file on all nodes, packets without its
seal are refused; olsrd does not support seals.

All nodes must use the same --quality family: etx_ff, etx_float and fast are compatible with each other and
with olsrd's LinkQualityLevel 2; hops is RFC 3626, olsrd's LinkQualityLevel 0. fast asks the wireless card
about its links; it learns the card's --sensitivity if that is not given.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m node_agent.olsr",
        description="An OLSR routing daemon with ETX, compatible with olsrd. Needs root (port 698, routes).",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = made.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "-i",
        "--interface",
        action="append",
        metavar="NAME",
        dest="interfaces",
        help="interface for OLSR; may be repeated, the first one's address is the node's main address",
    )
    which.add_argument(
        "--config", metavar="FILE", help="read everything from a JSON file and ignore other options"
    )
    for flag, name in (
        ("--hello", "hello_interval"),
        ("--hello-validity", "hello_validity"),
        ("--tc", "tc_interval"),
        ("--tc-validity", "tc_validity"),
        ("--mid", "mid_interval"),
        ("--mid-validity", "mid_validity"),
        ("--hna-interval", "hna_interval"),
        ("--hna-validity", "hna_validity"),
    ):
        default: float = getattr(_DEFAULT, name)
        what = f"between two {name[:-9].upper()}s" if name.endswith("interval") else "that one is valid"
        made.add_argument(
            flag, type=float, metavar="S", dest=name, default=default, help=f"seconds {what} ({default:g})"
        )
    made.add_argument(
        "--quality",
        choices=get_args(Quality),
        default=_DEFAULT.quality,
        help=f"the link metric ({_DEFAULT.quality})",
    )
    made.add_argument(
        "--sensitivity",
        type=float,
        metavar="DBM",
        help="for --quality fast: the signal at which half of the full-size frames arrive (learnt)",
    )
    made.add_argument(
        "--willingness",
        type=int,
        metavar="0-7",
        default=_DEFAULT.willingness,
        help="willingness to relay for others (3)",
    )
    made.add_argument("--no-fisheye", action="store_true", help="send every TC through the whole network")
    made.add_argument(
        "--hna",
        action="append",
        default=[],
        metavar="NETWORK",
        dest="hna",
        help="a network behind this node, e.g. 192.168.55.0/24; may be repeated",
    )
    made.add_argument(
        "--accept-hna",
        action="append",
        default=[],
        metavar="PREFIX",
        dest="accept_networks",
        help="make routes to networks inside PREFIX that others announce; 0.0.0.0/0 is the default route"
        " alone; may be repeated (none)",
    )
    made.add_argument(
        "--network",
        action="append",
        default=[],
        metavar="PREFIX",
        dest="networks",
        help="network of the other nodes, e.g. 10.0.0.0/16; no routes lead elsewhere; may be repeated"
        " (the interfaces' own networks)",
    )
    add_key_argument(made)
    made.add_argument(
        "--longest-validity",
        type=float,
        metavar="S",
        default=_DEFAULT.longest_validity,
        help=f"limit of all validity times in seconds ({_DEFAULT.longest_validity:g})",
    )
    for plugin in ("jsoninfo", "txtinfo", "netjson"):
        port: int = getattr(_PORTS, f"{plugin}_port")
        made.add_argument(
            f"--{plugin}-port",
            type=int,
            metavar="PORT",
            default=port,
            help=f"on 127.0.0.1; 0 = none ({port})",
        )
    made.add_argument("--no-routes", action="store_true", help="leave the kernel's routes alone")
    made.add_argument(
        "--log", action="store_true", help="a line on standard output for each route that changes"
    )
    made.add_argument("--seed", type=int, metavar="N", help="repeatable jitter and sequence numbers")
    return made


def configured(arguments: argparse.Namespace) -> ProcessConfig:
    """Builds the configuration from the command line. Raises ValueError."""
    given = vars(arguments)
    for option in ("hna", "accept_networks", "networks"):
        for network in given[option]:
            try:
                IPv4Network(network)
            except ValueError as error:
                raise ValueError(f"{_OPTIONS[option]} {network}: {error}") from None
    times = {
        f"{name}_{part}": given[f"{name}_{part}"]
        for name in ("hello", "tc", "mid", "hna")
        for part in ("interval", "validity")
    }
    return ProcessConfig(
        interfaces=tuple(arguments.interfaces),
        olsr=OlsrConfig(
            **times,
            quality=arguments.quality,
            willingness=arguments.willingness,
            fisheye=not arguments.no_fisheye,
            hna=tuple(arguments.hna),
            accept_networks=tuple(arguments.accept_networks),
            longest_validity=arguments.longest_validity,
        ),
        manet=ManetConfig(
            networks=tuple(arguments.networks),
            key=read_key(arguments.key_file) if arguments.key_file else b"",
        ),
        jsoninfo_port=arguments.jsoninfo_port,
        txtinfo_port=arguments.txtinfo_port,
        netjson_port=arguments.netjson_port,
        routes=not arguments.no_routes,
        log=arguments.log,
        seed=arguments.seed,
        sensitivity=arguments.sensitivity,
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
