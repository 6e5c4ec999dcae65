"""Adds a seal to AODV messages, as an extension at the end (RFC 3561, section 9) that others ignore."""

from node_agent.manet.seal import SIZE, Seal, Unsealed

EXTENSION = 240
_HEADER = bytes((EXTENSION, SIZE))
OVERHEAD = len(_HEADER) + SIZE


def seal_message(seal: Seal, message: bytes, sender: int) -> bytes:
    return seal.add(message + _HEADER, sender)


def open_message(seal: Seal, data: bytes, sender: int) -> bytes:
    """Returns the message without its seal. Raises Unsealed."""
    content = seal.check(data, sender)
    if not content.endswith(_HEADER):
        raise Unsealed("unauthenticated")
    return content[: -len(_HEADER)]
