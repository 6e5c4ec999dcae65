"""`python -m orchestrator.captures FILE.pcap` lists the OLSR packets of a capture."""

import argparse
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from scapy.error import Scapy_Exception
from scapy.layers.inet import IP
from scapy.packet import Packet
from scapy.utils import PcapReader

from orchestrator.captures.olsr import Olsr
from orchestrator.errors import BadInput


def olsr_packets(path: Path) -> Iterator[Packet]:
    try:
        with PcapReader(str(path)) as packets:
            for packet in packets:
                if IP in packet and Olsr in packet:
                    yield packet
    except (OSError, EOFError, Scapy_Exception) as error:
        raise BadInput(f"{path} cannot be read as a capture: {error}") from error


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.captures", description="List OLSR packets.")
    parser.add_argument("file", type=Path, help="a pcap or pcapng file, gzip too")
    parser.add_argument("--fields", action="store_true", help="show all fields of every packet")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends the output early, without an error
    try:
        for packet in olsr_packets(arguments.file):
            print(f"{packet.time:.6f} {packet[IP].src} {packet[Olsr].mysummary()}")
            if arguments.fields:
                packet[Olsr].show()
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
