"""Which features of an interface are on: ``python -m tests.kernel.offloads eth0``."""

import struct
import sys

from node_agent.host.setup import offload


def all_that_are_on(interface: str) -> list[str]:
    words, bits = offload._features(interface)
    answer = offload._ask(interface, struct.pack("=II", 0x3A, words) + bytes(16 * words))
    return sorted(
        name for name, number in bits.items() if answer[2 + 4 * (number // 32) + 2] >> number % 32 & 1
    )


if __name__ == "__main__":
    print(*all_that_are_on(sys.argv[1]), sep="\n")
