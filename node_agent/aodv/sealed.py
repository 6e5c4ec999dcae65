"""Messages with a seal, which is an extension at the end (RFC 3561, section 9): others pass over it."""

from node_agent.manet.seal import SIZE, Seal, Unsealed

EXTENSION = 240
_HEADER = bytes((EXTENSION, SIZE))
OVERHEAD = len(_HEADER) + SIZE


def close(seal: Seal, message: bytes, sender: int) -> bytes:
    return seal.close(message + _HEADER, sender)


def open_message(seal: Seal, data: bytes, sender: int) -> bytes:
    """Raises Unsealed."""
    content = seal.open(data, sender)
    if not content.endswith(_HEADER):
        raise Unsealed("unauthenticated")
    return content[: -len(_HEADER)]
