"""Switches off offloads that merge and split frames (GRO, GSO, TSO), by the kernel's ethtool interface.

``python -m node_agent.host.setup.offload INTERFACE on|off FEATURE…`` switches features by name, so that
exactly those that were on can be switched on again.
"""

import array
import fcntl
import socket
import struct
import sys

_SIOCETHTOOL = 0x8946
_GET_STRINGS, _GET_SET_SIZE, _GET_FEATURES, _SET_FEATURES = 0x1B, 0x37, 0x3A, 0x3B
_FEATURE_NAMES = 4
_NAME = 32
MERGING = (
    "rx-gro",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
)


def merging_offloads(interface: str) -> tuple[str, ...]:
    """Returns those of ``MERGING`` that are on and can be switched off."""
    words, bits = _features(interface)
    answer = _ask(interface, struct.pack("=II", _GET_FEATURES, words) + bytes(16 * words))
    # Four words for each 32 features: changeable, requested, active, never changeable.
    changeable_and_on = [answer[at] & answer[at + 2] for at in range(2, 2 + 4 * words, 4)]
    return tuple(name for name in MERGING if name in bits and _has(changeable_and_on, bits[name]))


def switch(interface: str, names: tuple[str, ...], on: bool) -> None:
    words, bits = _features(interface)
    blocks = [[0, 0] for _ in range(words)]
    for name in names:
        word, bit = divmod(bits[name], 32)
        blocks[word][0] |= 1 << bit
        blocks[word][1] |= (1 << bit) if on else 0
    masks = [mask for block in blocks for mask in block]
    _ask(interface, struct.pack(f"=II{len(masks)}I", _SET_FEATURES, words, *masks))


def _features(interface: str) -> tuple[int, dict[str, int]]:
    """Returns the number of words that hold the features, and each feature's bit by name."""
    count = _ask(interface, struct.pack("=IIQI", _GET_SET_SIZE, 0, 1 << _FEATURE_NAMES, 0))[4]
    asked = struct.pack("=III", _GET_STRINGS, _FEATURE_NAMES, count) + bytes(_NAME * count)
    names = _ask(interface, asked).tobytes()[12:]
    texts = (names[at : at + _NAME].rstrip(b"\0").decode() for at in range(0, _NAME * count, _NAME))
    return (count + 31) // 32, {name: number for number, name in enumerate(texts) if name}


def _has(blocks: list[int], number: int) -> bool:
    word, bit = divmod(number, 32)
    return bool(blocks[word] >> bit & 1)


def _ask(interface: str, request: bytes) -> "array.array[int]":
    buffer = array.array("I", request + bytes(-len(request) % 4))
    address, _ = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), address))
    return buffer


def main() -> int:
    interface, word, *names = sys.argv[1:]
    try:
        switch(interface, tuple(names), word == "on")
    except OSError as error:
        print(f"{interface}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
